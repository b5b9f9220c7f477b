#include "sim/search/explain.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/report/kin.hpp"
#include "sim/run/predict.hpp"

namespace tidegate {
namespace {

constexpr std::size_t most_explained = 3;

std::map<std::string, Seconds> exposed_of(const Report& report) {
  std::map<std::string, Seconds> exposed;
  for (const Kin& kin : kin_of(report.resources)) exposed[kin.name] = kin.exposed;
  exposed["latencies and fixed delays"] = report.latency;
  exposed["waiting that no task explains"] = report.wait;
  return exposed;
}

Report report_of(const Evaluator& evaluator, const std::vector<Override>& sets) {
  Scenario scenario = evaluator.scenario(sets);
  scenario.iterations = std::max(scenario.iterations, 3);
  return predict(scenario).report;
}

}  // namespace

Explanation explain(const Report& before, const Report& after) {
  Explanation e;
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (before.phases[p] == Seconds(0) && after.phases[p] == Seconds(0)) continue;
    e.phases.push_back({name_of(static_cast<Phase>(p)), before.phases[p], after.phases[p]});
  }
  std::map<std::string, Explanation::Shift> shifts;
  for (const auto& [name, time] : exposed_of(before)) shifts[name] = {name, time, Seconds(0)};
  for (const auto& [name, time] : exposed_of(after)) {
    shifts.try_emplace(name, Explanation::Shift{name, Seconds(0), Seconds(0)});
    shifts[name].after = time;
  }
  for (const auto& [name, shift] : shifts) {
    if (std::max(shift.before, shift.after) > Seconds(0)) e.exposed.push_back(shift);
  }
  std::ranges::stable_sort(e.exposed, std::greater{}, [](const Explanation::Shift& s) {
    return std::abs(s.change().value());
  });
  return e;
}

TuneReport report_tuning(const Evaluator& evaluator, Tuning tuning, const std::string& command) {
  const Scenario scenario = evaluator.scenario({});
  TuneReport report{.tuning = std::move(tuning),
                    .scenario = scenario.name,
                    .profile = scenario.machine.name(),
                    .revision = revision(),
                    .command = command};
  const Tuning& t = report.tuning;
  if (!t.best || !t.today.trial) return report;
  const Report best = report_of(evaluator, t.best->sets);
  report.why_best.push_back(explain(report_of(evaluator, {}), best));
  for (std::size_t i = 0; i < std::min(most_explained, t.runners_up.size()); ++i)
    report.why_runners_up.push_back(explain(best, report_of(evaluator, t.runners_up[i].sets)));
  return report;
}

}  // namespace tidegate
