#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "calib/checks/checks.hpp"

namespace tidegate::calib {

Check judge_processors(const rig::Readings& before, const rig::Readings& after) {
  const rig::Foreign during = rig::foreign(before, after);
  const bool counts_quota = before.throttled >= 0 && after.throttled >= 0;
  const std::string quota = counts_quota
                                ? fmt::format("a quota stopped us in {} periods", during.throttled)
                                : "quota not counted";
  const auto numbers =
      fmt::format("the hypervisor took {:.1f} % of the cores' time, {}", 100 * during.steal, quota);
  const bool is_bad = during.steal > 0.02 || during.throttled > 0;
  return {"processors", is_bad ? Verdict::suspected : Verdict::ok,
          is_bad ? numbers + ": CPU rates are those of what was left" : numbers};
}

Check judge_neighbours(const rig::Foreign& foreign, const std::string& device) {
  const std::optional<double>& bytes = foreign.bytes_per_second;
  const std::string traffic = device.empty() ? "no device watched"
                              : bytes
                                  ? fmt::format("{} on {}", to_text(BytesPerSecond(*bytes)), device)
                                  : "traffic on " + device + " is not counted";
  const auto numbers = fmt::format("others keep {:.2f} cores busy, {}", foreign.cores, traffic);
  if (foreign.cores > 0.25 || bytes.value_or(0) > 15e6)
    return {"neighbours", Verdict::suspected, numbers + ": rates are those beside them"};
  const bool is_told = device.empty() || bytes;
  return {"neighbours", is_told ? Verdict::ok : Verdict::not_told, numbers};
}

Check judge_ceilings(const Measurements& measurements) {
  std::int64_t known = 0;
  double highest = 0;
  std::string worst;
  for (const RowResult& result : measurements.rows) {
    if (result.row.ceiling <= 0) continue;
    ++known;
    for (const Block& block : result.blocks) {
      for (const TakenSample& sample : block.samples) {
        const double part = sample.value / result.row.ceiling;
        if (!sample.spoiled.empty() || part <= highest) continue;
        highest = part;
        worst = fmt::format("{} at {:.4g} {}, {:.0f} % of {:.4g} ({})", result.row.id(),
                            sample.value, name_of(result.row.unit), 100 * part, result.row.ceiling,
                            result.row.ceiling_from);
      }
    }
  }
  if (known == 0) return {"ceilings", Verdict::not_told, "no row has a known ceiling"};
  if (worst.empty()) {
    return {"ceilings", Verdict::not_told,
            fmt::format("{} rows, and no sample that counts", known)};
  }
  if (highest <= 1) {
    return {"ceilings", Verdict::ok, fmt::format("{} rows, the nearest {}", known, worst)};
  }
  return {"ceilings", Verdict::suspected,
          worst + ": a cache answers, or the work was not done as counted"};
}

Check judge_contents(const Measurements& measurements) {
  std::int64_t faulty = 0;
  std::string first;
  for (const RowResult& result : measurements.rows) {
    if (result.faults.empty()) continue;
    if (faulty++ == 0) first = result.row.id() + ": " + result.faults.front();
  }
  if (measurements.rows.empty()) return {"contents", Verdict::not_told, "nothing was measured"};
  if (faulty == 0) {
    return {"contents", Verdict::ok,
            fmt::format("contents and checksums of {} rows were right", measurements.rows.size())};
  }
  return {"contents", Verdict::suspected,
          fmt::format("{} rows are faulty, first {}", faulty, first)};
}

}  // namespace tidegate::calib
