#include "validate/execute/trained_scenario.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "calib/rig/interrupt.hpp"
#include "calib/rig/readings.hpp"
#include "models/base/error.hpp"
#include "sim/policy/build_plan.hpp"
#include "sim/report/period.hpp"
#include "validate/execute/checkpoint.hpp"
#include "validate/train/operators.hpp"

namespace tidegate {
namespace {

using Stopwatch = std::chrono::steady_clock;

Seconds since(Stopwatch::time_point start) {
  return Seconds(std::chrono::duration<double>(Stopwatch::now() - start).count());
}

void check_fit(const SimulatedPlan& p) {
  for (std::size_t i = 0; i < p.plan.pools.size(); ++i) {
    const Pool& pool = p.plan.pools[i];
    const auto peak = static_cast<double>(p.timeline.pools[i].peak);
    if (peak <= pool.capacity.value()) continue;
    throw InputError(fmt::format(
        "the run does not fit in the memory of its profile: {} needs {} and has {}; tidegate "
        "simulate says what would fit",
        pool.name, to_text(Bytes(peak)), to_text(pool.capacity)));
  }
}

// In fp32, of both trainings: states three times (begun with, put by the plan, of the reference),
// and per rank parameters, gradients and what forward saves, computed in 4 bytes what is kept in 2.
void check_memory(const Scenario& scenario, const LayerGraph& graph) {
  const auto parameters = static_cast<double>(graph.parameters);
  const double ranks = scenario.ranks;
  const double saved =
      2 * graph.saved().value() * static_cast<double>(scenario.workload.accumulation);
  const Bytes needed(parameters * (5 * 12 + 16 * ranks) + ranks * saved);
  const Bytes available = rig::host_facts().memory_available;
  if (needed <= available) return;
  throw InputError(fmt::format(
      "the arithmetic of {:.3g} parameters takes about {} of memory on this machine, and {} are "
      "available; take a smaller network (--set workload.network.layers=2)",
      parameters, to_text(needed), to_text(available)));
}

Seconds iteration_time(const Plan& plan, const Timeline& timeline) {
  const Steady steady = steady_period(iterations_of(plan, timeline));
  return steady.time() / steady.iterations();
}

class ScenarioTraining {
 public:
  ScenarioTraining(Scenario& scenario, const TrainRequest& request)
      : scenario_(scenario),
        request_(request),
        graph_(build_graph(scenario.workload)),
        layout_(layout_of(scenario)) {
    check();
    options_ = {.seed = request.seed,
                .ranks = layout_.data(),
                .update = update_of_plan(),
                .reduces_every_micro_step = scenario.policy.zero.stage >= 2,
                .backend = request.backend};
    check_state();
    print_ = fingerprint(scenario.workload, graph_, options_);
    if (!request.checkpoint.empty()) check_checkpoint_folder(request.checkpoint, graph_, print_);
    result_ = {.scenario = scenario.name,
               .policy = scenario.policy.describe(),
               .profile = scenario.machine.name(),
               .ranks = scenario.ranks,
               .are_processes =
                   scenario.ranks > 1 && !request.in_one_process && request.backend == nullptr,
               .parameters = graph_.parameters,
               .place = options_.computes().place(),
               .products = options_.computes().products_text(scenario.workload.dtype)};
  }

  TrainedScenario run() {
    state_ = train::initial_state(graph_, request_.seed);
    if (!request_.resume.empty()) state_ = read_checkpoint(request_.resume, graph_, print_);
    result_.first_step = state_.step;
    if (state_.step >= request_.steps) {
      throw InputError(fmt::format("{} steps are done in {}; give --steps more than that",
                                   state_.step, request_.resume));
    }
    while (state_.step < request_.steps) run_segment();
    compare_with_alone();
    return std::move(result_);
  }

 private:
  Scenario& scenario_;
  const TrainRequest& request_;
  LayerGraph graph_;
  Layout layout_;
  train::TrainingOptions options_;
  std::string print_;
  train::State state_;
  std::vector<double> losses_;
  TrainedScenario result_;

  void check() const {
    if (scenario_.machine.nodes() > 1) {
      throw InputError(fmt::format("{} has {} nodes; a rig is one node", scenario_.machine.name(),
                                   scenario_.machine.nodes()));
    }
    if (const std::string why = train::unsupported(scenario_.workload); !why.empty())
      throw InputError("this network has no arithmetic here: " + why);
    check_memory(scenario_, graph_);
  }

  // Between two steps an update is under way, of which a state knows nothing.
  void check_state() const {
    const bool has_state = !request_.checkpoint.empty() || !request_.resume.empty();
    if (!options_.update.is_delayed || !has_state) return;
    throw InputError(
        "a delayed update is still under way between two steps, and a state does not hold it; "
        "train "
        "without --checkpoint and --resume, or with delayed_update: false");
  }

  Setting setting() const {
    Setting setting = setting_of(scenario_, graph_, scenario_.machine, layout_);
    setting.carries_meaning = true;
    return setting;
  }

  Update update_of_plan() const {
    return build_plan(setting(), scenario_.policy, 1).meaning.update;
  }

  SimulatedPlan plan(std::int64_t steps) {
    scenario_.iterations = static_cast<std::int32_t>(steps);
    SimulatedPlan p = simulate_scenario(setting(), scenario_);
    check_fit(p);
    return p;
  }

  void run_segment() {
    const bool is_cut = !request_.checkpoint.empty() && request_.every > 0;
    const std::int64_t left = request_.steps - state_.step;
    result_.plan = plan(is_cut ? std::min(request_.every, left) : left);
    const SimulatedPlan& p = result_.plan;
    result_.predicted = iteration_time(p.plan, p.timeline);
    const Rig rig{.machine = scenario_.machine,
                  .pace = Pace::native,
                  .folders = folders_of(scenario_.machine, request_.storage)};
    train::TrainingOptions options = options_;
    options.start = &state_;
    TrainingRun run = train_on(rig, p.plan, scenario_.workload, graph_, options,
                               {.are_processes = result_.are_processes, .deaths = request_.deaths});
    result_.measured = iteration_time(p.plan, run.timeline);
    result_.kinds =
        tidegate::compare(p.plan, p.timeline, run.timeline, p.demands, p.resources).kinds;
    result_.timeline = std::move(run.timeline);
    state_ = std::move(run.training.state);
    losses_.insert(losses_.end(), run.training.losses.begin(), run.training.losses.end());
    result_.file_bytes_read += run.file_bytes_read;
    result_.file_bytes_written += run.file_bytes_written;
    result_.beside += run.beside;
    if (!request_.checkpoint.empty())
      result_.checkpoints.push_back(write_checkpoint(request_.checkpoint, state_, print_));
  }

  // From the first step, whatever was resumed.
  void compare_with_alone() {
    train::TrainingOptions options = options_;
    options.steps = request_.steps;
    options.between = rig::check_interrupt;
    const auto start = Stopwatch::now();
    const train::Training alone = train::train(scenario_.workload, options);
    result_.alone_measured = since(start) / static_cast<double>(request_.steps);
    const std::size_t before = alone.losses.size() - losses_.size();
    const std::vector<double> same_steps(alone.losses.begin() + static_cast<std::ptrdiff_t>(before),
                                         alone.losses.end());
    for (std::size_t i = 0; i < losses_.size(); ++i)
      result_.other_losses += std::memcmp(&losses_[i], &same_steps[i], sizeof(double)) != 0;
    result_.losses = by_step(losses_);
    result_.alone = by_step(same_steps);
    compare(state_.master, alone.state.master);
    compare(state_.first, alone.state.first);
    compare(state_.second, alone.state.second);
  }

  std::vector<double> by_step(const std::vector<double>& losses) const {
    const auto each = static_cast<std::ptrdiff_t>(scenario_.workload.accumulation * options_.ranks);
    std::vector<double> means;
    for (auto first = losses.begin(); first != losses.end(); first += each)
      means.push_back(std::accumulate(first, first + each, 0.0) / static_cast<double>(each));
    return means;
  }

  void compare(const train::NetworkTensors& here, const train::NetworkTensors& alone) {
    for (std::size_t l = 0; l < here.size(); ++l) {
      for (std::size_t op = 0; op < here[l].size(); ++op) {
        for (std::size_t i = 0; i < here[l][op].size(); ++i) {
          const train::Values &a = here[l][op][i], &b = alone[l][op][i];
          result_.numbers += a.size();
          for (std::size_t e = 0; e < a.size(); ++e)
            result_.other_numbers += std::memcmp(&a[e], &b[e], sizeof(float)) != 0;
        }
      }
    }
  }
};

}  // namespace

TrainedScenario train_scenario(Scenario& scenario, const TrainRequest& request) {
  return ScenarioTraining(scenario, request).run();
}

}  // namespace tidegate
