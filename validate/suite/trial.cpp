#include "validate/suite/trial.hpp"

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/run/predict.hpp"
#include "validate/engine/scale.hpp"

namespace tidegate {
namespace {

void check_runnable(const Scenario& scenario, const Prediction& p) {
  if (scenario.machine.nodes() > 1) {
    throw InputError(fmt::format("{} has {} nodes; a rig is one node", scenario.machine.name(),
                                 scenario.machine.nodes()));
  }
  if (p.plan.ranks != scenario.ranks) {
    throw InputError(fmt::format(
        "the plan has {} ranks that stand for {}; a rig runs every rank: take tensor_parallel: 1",
        p.plan.ranks, scenario.ranks));
  }
  if (!p.report.fits) {
    throw InputError(
        "the run does not fit in the memory of its profile; tidegate simulate says what would fit");
  }
}

}  // namespace

Trial run_trial(Scenario& scenario, const TrialOptions& options) {
  Prediction p = predict(scenario);
  check_runnable(scenario, p);
  Trial trial{.plan = options.scale == 1 ? std::move(p.plan) : scaled(p.plan, options.scale),
              .demands = {},
              .resources = std::move(p.resources),
              .predicted = {},
              .measured = {},
              .comparison = {}};
  trial.demands = price(trial.plan, scenario.machine);
  trial.predicted = simulate(trial.plan, trial.demands, trial.resources);
  const Rig rig{.machine = scenario.machine,
                .pace = options.pace,
                .folders = folders_of(scenario.machine, options.storage)};
  for (trial.tries = 0; trial.tries < options.tries;) {
    Execution run = run_on(rig, trial.plan);
    const Comparison seen =
        compare(trial.plan, trial.predicted, run.timeline, trial.demands, trial.resources,
                {.lateness = run.lateness, .gate = options.gate});
    if (trial.tries == 0 || seen.floor < trial.comparison.floor) {
      trial.comparison = seen;
      trial.measured = std::move(run);
    }
    ++trial.tries;
    if (trial.comparison.floor <= options.calm) break;
  }
  return trial;
}

}  // namespace tidegate
