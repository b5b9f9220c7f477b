#include <algorithm>

#include <fmt/core.h>

#include "sim/report/table.hpp"
#include "validate/compare/comparison.hpp"

namespace tidegate {
namespace {

constexpr std::size_t most_rows = 12;

std::vector<std::string> row(const std::string& name, const Pair& time) {
  return {name, to_text(time.predicted), to_text(time.measured), percent(time.error())};
}

std::string groups_text(const char* what, const std::vector<Group>& groups) {
  Table table{.header = {what, "predicted", "measured", "error", "tasks"}, .rows = {}, .align = {}};
  for (std::size_t i = 0; i < std::min(most_rows, groups.size()); ++i) {
    table.rows.push_back(row(groups[i].name, groups[i].time));
    table.rows.back().push_back(std::to_string(groups[i].tasks));
  }
  std::string text = to_text(table);
  if (groups.size() > most_rows) {
    text += fmt::format("and {} smaller; --json lists all\n", groups.size() - most_rows);
  }
  return text;
}

std::string steps_text(const Comparison& c) {
  Table table{.header = {"phase", "predicted", "measured", "error"}, .rows = {}, .align = {}};
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (c.phases[p].measured == Seconds(0) && c.phases[p].predicted == Seconds(0)) continue;
    table.rows.push_back(row(name_of(static_cast<Phase>(p)), c.phases[p]));
  }
  table.rows.push_back(row("iteration", c.step));
  return to_text(table);
}

std::string pools_text(const Comparison& c) {
  Table table{
      .header = {"memory", "predicted peak", "at", "measured peak", "at"}, .rows = {}, .align = {}};
  for (const PoolPeak& p : c.pools) {
    if (p.predicted == 0 && p.measured == 0) continue;
    table.rows.push_back({p.name, to_text(Bytes(static_cast<double>(p.predicted))),
                          to_text(p.predicted_at), to_text(Bytes(static_cast<double>(p.measured))),
                          to_text(p.measured_at)});
  }
  std::string text = table.rows.empty() ? "" : to_text(table) + "\n";
  for (const PoolPeak& p : c.pools) {
    if (p.predicted == p.measured) continue;
    text += fmt::format("Pool {} held {} B at most, {} B were predicted.\n", p.name, p.measured,
                        p.predicted);
  }
  if (!c.same_peaks()) return text;
  return text + fmt::format("All {} pools held at most what was predicted, to the byte.\n",
                            c.pools.size());
}

std::string interval_text(const Comparison& c) {
  if (!c.interval) return "";
  return fmt::format("Nine in ten predictions lie within {} to {}: the measurement is {}.\n",
                     to_text(c.interval->low), to_text(c.interval->high),
                     c.interval->contains(c.step.measured) ? "inside" : "outside");
}

std::string order_text(const Comparison& c) {
  std::string text;
  if (c.reordered.empty()) {
    text = "The predicted tasks ran in the predicted order on every lane.\n";
  } else {
    text = fmt::format("Other tasks ran, or in another order, on {} lanes:", c.reordered.size());
    for (const std::string& lane : c.reordered) text += " " + lane;
    text += "\n";
  }
  if (c.choices > 0) {
    text += fmt::format("{} of {} choices that hang on time came out otherwise.\n", c.other_choices,
                        c.choices);
  }
  return text;
}

std::string signed_text(Seconds time) {
  return time < Seconds(0) ? "-" + to_text(-time) : to_text(time);
}

std::string flips_text(const Comparison& c) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, c.flips.size()); ++i) {
    const Flip& f = c.flips[i];
    text += fmt::format("  {}: the {} comes {} after the {} as predicted, {} as measured\n", f.of,
                        f.second, signed_text(f.predicted), f.first, signed_text(f.measured));
  }
  if (c.flips.size() > most) {
    text += fmt::format("  and {} more; --json lists all\n", c.flips.size() - most);
  }
  return text;
}

std::string suspects_text(const Comparison& c) {
  std::string text;
  for (const Suspect& s : c.suspects) {
    text += fmt::format(
        "{}: its {} tasks take {:.2f} times what was predicted, all alike (spread {:.2f}); {} of "
        "the "
        "iteration hang on it.\n",
        s.device, s.tasks, s.ratio, s.spread, to_text(s.exposed));
  }
  return text.empty() ? "No device is off as a whole.\n"
                      : "Devices whose rate in the profile is wrong:\n" + text;
}

std::string verdict_text(const Comparison& c) {
  switch (c.verdict) {
    case Verdict::agrees:
      return fmt::format("Agrees: the iteration is predicted within {:.0f} %.", 100 * c.gate);
    case Verdict::differs:
      return fmt::format("Differs: the iteration is off by more than {:.0f} %.", 100 * c.gate);
    case Verdict::inconclusive:
      return fmt::format("Inconclusive: the host itself took more than {:.0f} %.", 100 * c.gate);
  }
  return "";
}

}  // namespace

std::string percent(std::optional<double> error) {
  return error ? fmt::format("{:+.1f} %", 100 * *error) : "";
}

std::string to_text(const Comparison& c) {
  std::string text = verdict_text(c);
  text += fmt::format(" Error {}; lateness of the host {:.1f} %.\n", percent(c.step.error()),
                      100 * c.floor);
  for (const std::string& remark : c.remarks) text += remark + "\n";
  text += "\n";
  text += steps_text(c) + interval_text(c) + "\n" + groups_text("tasks, sums", c.kinds) + "\n" +
          groups_text("critical path", c.path) + "\n";
  return text + suspects_text(c) + order_text(c) + flips_text(c) + pools_text(c);
}

}  // namespace tidegate
