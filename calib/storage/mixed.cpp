#include <algorithm>
#include <array>

#include "calib/storage/rows.hpp"

namespace tidegate::calib {
namespace {

// Two independent streams for the same time: writes paced to a part of the rate that overwriting
// has alone, reads as fast as they go. Sample for the one or the other.
Sample take_mixed(Target& target, const Setting& setting, double cap, std::int64_t bytes,
                  Direction wanted) {
  const auto most = static_cast<double>(bytes);
  // As long as a whole share of writes takes at full rate.
  const double seconds = most / target.write_rate().value();
  std::array<StreamPlan, 2> plans;
  for (StreamPlan& plan : plans) {
    plan.block = setting.block;
    plan.depth = setting.depth;
    plan.most_time = Seconds(seconds);
    plan.forgets_cache = false;  // it would wait for the writes
  }
  plans[1].direction = Direction::write;
  plans[1].rate = cap * target.write_rate();
  plans[1].most_bytes = std::max(static_cast<std::int64_t>(cap * most), setting.block);
  std::array<Target*, 2> both = {&target, &target};
  const std::size_t count = cap > 0 ? 2 : 1;
  target.forget_cache();
  const auto results = streams(std::span(both).first(count), std::span(plans).first(count));
  const bool reads = wanted == Direction::read;
  Sample sample = rate_sample(results[reads ? 0 : 1], wanted);
  sample.read = results[0].bytes;
  sample.written = count > 1 ? results[1].bytes : 0;
  sample.is_verified = results[0].wrong_blocks == 0;
  return sample;
}

StorageRow mixed(const RowSetup& setup, const Setting& setting, double cap, Direction wanted) {
  auto at = coordinates(setting);
  at.emplace_back("write_cap", cap);
  const char* quantity = wanted == Direction::read ? "mixed_read" : "mixed_write";
  const std::int64_t bytes = bytes_of(setup, 1, setting.block);
  const auto take = [=, path = setup.path](std::span<Target> targets) {
    return take_mixed(targets[path], setting, cap, bytes, wanted);
  };
  return {make_row(setup, quantity, at), cap, take};
}

}  // namespace

std::vector<StorageRow> mixed_rows(const RowSetup& setup) {
  std::vector<Setting> streams = {{mib, 16, 1}};
  if (setup.effort == Effort::full) streams = {{mib, 4, 1}, {mib, 16, 1}, {4 * mib, 4, 1}};
  std::vector<StorageRow> rows;
  for (const Setting& setting : streams) {
    if (2 * setting.depth > setup.most_depth) continue;
    for (const double cap : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      rows.push_back(mixed(setup, setting, cap, Direction::read));
      if (cap > 0) rows.push_back(mixed(setup, setting, cap, Direction::write));
    }
  }
  return rows;
}

}  // namespace tidegate::calib
