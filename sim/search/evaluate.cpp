#include "sim/search/evaluate.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/report/needs.hpp"
#include "sim/report/period.hpp"
#include "sim/report/usage.hpp"
#include "sim/run/predict.hpp"

namespace tidegate {
namespace {

constexpr std::int32_t least_iterations = 3;
constexpr double steady_within = 0.001;
constexpr double seconds_per_year = 365.25 * 86400;
constexpr double seconds_per_day = 86400;

bool changes_machine(const Override& set) {
  return set.first == "hardware" || set.first.starts_with("machine.");
}

bool changes_graph(const Override& set) {
  return changes_machine(set) || set.first == "workload" || set.first.starts_with("workload.");
}

// What is said of a key that was set, else the first problem.
std::string refusal_of(const InputError& error, const std::vector<Override>& sets) {
  const auto is_of_sets = [&](const Problem& p) {
    return std::ranges::any_of(sets, [&](const Override& set) { return p.key == set.first; });
  };
  const auto own = std::ranges::find_if(error.problems(), is_of_sets);
  const Problem& said = own == error.problems().end() ? error.problems().front() : *own;
  return said.key.empty() ? said.text : said.key + ": " + said.text;
}

bool may_tire(const Machine& machine) {
  return std::ranges::any_of(machine.resources(),
                             [](const Resource& r) { return r.burst > Seconds(0); });
}

std::vector<Need> needs_of(const Plan& plan, const std::vector<PoolNeed>& pools,
                           const Machine& machine) {
  std::vector<Need> needs;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const Pool& pool = plan.pools[p];
    needs.push_back(need_of(pool, Bytes(static_cast<double>(pools[p].bytes())), machine));
  }
  return needs;
}

Trial::Wear wear_of(const StoragePath& path, Bytes written, Seconds time) {
  Trial::Wear wear{.path = path.name,
                   .written_per_day = written * (seconds_per_day / time.value()),
                   .life_years = std::nullopt};
  if (path.endurance_bytes <= 0 || written <= Bytes(0)) return wear;
  const double amplification = path.write_amplification / path.rated_write_amplification;
  const double per_year = written.value() * amplification * seconds_per_year / time.value();
  wear.life_years = path.endurance_bytes / per_year;
  return wear;
}

Trial trial_of(const SimulatedPlan& run, const std::vector<Iteration>& iterations,
               const Scenario& scenario, const Machine& machine, double tokens) {
  const Steady steady = steady_period(iterations);
  const std::vector<PoolNeed> pools = pool_needs(run.plan, run.timeline, scenario.allocator);
  const Seconds time = steady.time() / steady.iterations();
  Trial trial{.iteration_time = time,
              .tokens_per_second = tokens / time.value(),
              .fits = std::ranges::all_of(pools, &PoolNeed::fits),
              .needs = needs_of(run.plan, pools, machine),
              .wear = {}};
  Traffic traffic = traffic_of(run.plan, run.timeline, steady);
  traffic.paths.resize(machine.paths().size());
  for (std::size_t p = 0; p < machine.paths().size(); ++p) {
    trial.wear.push_back(
        wear_of(machine.paths()[p], traffic.paths[p].written / steady.iterations(), time));
    trial.wear.back().written_per_day *= machine.fold();
  }
  return trial;
}

Draft draft_of(const ScenarioSource& source, const std::vector<Override>& overrides) {
  Scenario scenario = load_scenario(source, overrides);
  return {scenario_values(source, overrides),
          source.name,
          source.path,
          std::move(scenario.profile),
          std::move(scenario.hardware),
          std::move(scenario.machine)};
}

bool is_steady(const std::vector<Iteration>& iterations) {
  const double last = iterations.back().time().value();
  const double before = iterations[iterations.size() - 2].time().value();
  return std::abs(last - before) <= steady_within * last;
}

}  // namespace

double Trial::fullest() const {
  double most = 0;
  for (const Need& need : needs) {
    if (std::isfinite(need.capacity.value())) most = std::max(most, need.bytes / need.capacity);
  }
  return most;
}

Evaluator::Evaluator(ScenarioSource source, std::vector<Override> overrides)
    : source_(std::move(source)),
      overrides_(std::move(overrides)),
      draft_(draft_of(source_, overrides_)) {}

Scenario Evaluator::scenario(const std::vector<Override>& sets) const {
  if (!std::ranges::any_of(sets, changes_machine)) return read_scenario(draft_, sets);
  std::vector<Override> all(overrides_);
  all.insert(all.end(), sets.begin(), sets.end());
  return load_scenario(source_, all);
}

const Evaluator::Prepared& Evaluator::prepared(const Scenario& scenario,
                                               const std::vector<Override>& sets) const {
  std::string key;
  for (const Override& set : sets) {
    if (changes_graph(set)) key += fmt::format("{}={}\n", set.first, set.second);
  }
  const std::lock_guard hold(guard_);
  const auto known = prepared_.find(key);
  if (known != prepared_.end()) return known->second;
  LayerGraph graph = build_graph(scenario.workload);
  KernelTimes times = kernel_times(graph, scenario.machine);
  return prepared_.emplace(key, Prepared{std::move(graph), std::move(times)}).first->second;
}

Screening Evaluator::screen(const std::vector<Override>& sets) const {
  try {
    Scenario read = scenario(sets);
    const Prepared& p = prepared(read, sets);
    return {.refusal = "", .bound = bound_of(read, p.graph, p.times)};
  } catch (const InputError& error) {
    return {.refusal = refusal_of(error, sets), .bound = {}};
  }
}

Trial Evaluator::simulate(const std::vector<Override>& sets) const {
  Scenario read = scenario(sets);
  const LayerGraph& graph = prepared(read, sets).graph;
  const Layout layout = layout_of(read);
  const Machine machine = machine_here(read, read.machine);
  const Setting setting = setting_of(read, graph, machine, layout);
  const std::int32_t full = std::max(read.iterations, least_iterations);
  const bool is_short = !may_tire(machine);
  read.iterations =
      is_short ? std::max(least_iterations, read.policy.activations->least_iterations()) : full;
  SimulatedPlan run = simulate_scenario(setting, read);
  auto iterations = iterations_of(run.plan, run.timeline);
  if (read.iterations < full && !is_steady(iterations)) {
    read.iterations = full;
    run = simulate_scenario(setting, read);
    iterations = iterations_of(run.plan, run.timeline);
  }
  const auto tokens =
      static_cast<double>(graph.tokens * layout.data() * read.workload.accumulation);
  return trial_of(run, iterations, read, machine, tokens);
}

}  // namespace tidegate
