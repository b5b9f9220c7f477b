#include "validate/native/predictions.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/run/predict.hpp"

namespace tidegate {
namespace {

// Paths of one device are one resource: what uses a later one uses the first.
void join_devices(Expected& e, const std::vector<NativePath>& paths) {
  std::map<std::string, ResourceId> first;
  std::map<std::size_t, ResourceId> becomes;
  for (const NativePath& path : paths) {
    const auto at = std::ranges::find(e.resources, path.name, &Resource::name);
    ensure(at != e.resources.end(), "a storage path has a resource of its name");
    const auto own = static_cast<std::size_t>(at - e.resources.begin());
    const auto [known, is_new] = first.try_emplace(device_of(path), static_cast<ResourceId>(own));
    if (!is_new) becomes[own] = known->second;
  }
  for (Demand& demand : e.demands) {
    for (std::size_t i = 0; i < demand.share_count; ++i) {
      const auto other = becomes.find(index(demand.shares.at(i).resource));
      if (other != becomes.end()) demand.shares.at(i).resource = other->second;
    }
  }
}

void play(Expected& e, const std::vector<NativePath>& paths) {
  join_devices(e, paths);
  e.predicted = simulate(e.plan, e.demands, e.resources);
}

TrialOptions trial_of(const std::vector<NativePath>& paths) {
  TrialOptions trial{.pace = Pace::native, .storage = {}};
  for (const NativePath& path : paths) trial.storage.push_back(path.folder);
  return trial;
}

}  // namespace

NativeCase native_case(const SuiteFile& file, const SuiteCase& source, const Rates& rates,
                       const std::vector<NativePath>& paths) {
  Scenario scenario = scenario_of(file, source, overrides_of(rates));
  NativeCase c{.source = source,
               .policy = scenario.policy.describe(),
               .expected = expect(scenario, trial_of(paths))};
  c.uses_files = std::ranges::any_of(
      c.expected.plan.works, [](const Work& work) { return std::holds_alternative<FileIo>(work); });
  play(c.expected, paths);
  return c;
}

Expected with_rates(const SuiteFile& file, const NativeCase& c, const Rates& rates,
                    const std::vector<NativePath>& paths) {
  const Scenario scenario = scenario_of(file, c.source, overrides_of(rates));
  Expected e = c.expected;
  const Machine machine = machine_here(scenario, scenario.machine);
  e.demands = price(e.plan, machine);
  const auto resources = machine.resources();
  e.resources.assign(resources.begin(), resources.end());
  play(e, paths);
  return e;
}

Seconds step_of(const Expected& e) {
  return compare(e, {.timeline = e.predicted, .lateness = {}}).step.predicted;
}

std::optional<double> reach_of(const SuiteFile& file, const NativeCase& c, const Rates& rates,
                               std::int32_t draws, std::uint64_t seed) {
  Scenario scenario = scenario_of(file, c.source, overrides_of(rates));
  TrialOptions trial{.pace = Pace::native, .storage = {}, .draws = draws, .seed = seed};
  const Expected e = expect(scenario, trial);
  if (!e.interval) return std::nullopt;
  return std::log(e.interval->high / e.interval->low) / 2;
}

}  // namespace tidegate
