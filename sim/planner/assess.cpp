#include "sim/planner/assess.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/run/elasticity.hpp"
#include "sim/run/predict.hpp"
#include "sim/search/corners.hpp"
#include "sim/search/pool.hpp"

namespace tidegate::planner {
namespace {

using State = Assessment::State;

// No policy of the space is faster; the first bound below what is enough when there is one.
Seconds least_time(const Evaluator& evaluator, const Space& space, const TuneOptions& options,
                   Seconds enough) {
  Threads threads(evaluator, options.threads);
  CandidatePool pool(threads, space, options, nullptr);
  const std::vector<Picks> crossed = space.crossed_picks();
  pool.screen(crossed);
  Seconds least(std::numeric_limits<double>::infinity());
  for (const Picks& picks : crossed) {
    if (options.is_stopped()) return Seconds(0);
    if (!pool.screening(picks).refusal.empty() || cannot_fit(pool, space, picks)) continue;
    least = std::min(least, least_bound(pool, space, picks, enough));
    if (least < enough) return least;
  }
  return least;
}

TuneOptions tune_options(const AssessOptions& options) {
  TuneOptions tuning;
  tuning.threads = options.threads;
  tuning.most_simulations = options.simulations;
  tuning.margin = options.margin;
  tuning.is_stopped = options.is_stopped;
  tuning.progress = options.progress;
  return tuning;
}

/// Mean over resources whose names begin and end so.
double busy_of(const Report& report, std::string_view begin, std::string_view end) {
  double sum = 0;
  int count = 0;
  for (const Report::Resource& r : report.resources) {
    if (!r.name.ends_with(end) || r.name.find(begin) == std::string::npos) continue;
    sum += r.busy_fraction, ++count;
  }
  return count > 0 ? sum / count : 0;
}

Usage usage_of(const Report& report, const Trial& trial) {
  Usage usage{.gpu = busy_of(report, "gpu", ".compute"),
              .cores = busy_of(report, "numa", ".cores"),
              .memory = busy_of(report, "numa", ".dram"),
              .drives = busy_of(report, "", "nvme"),
              .network = busy_of(report, "", "network.out")};
  for (const Trial::Wear& wear : trial.wear) {
    if (!wear.life_years || !wear.path.ends_with("nvme")) continue;
    usage.drive_life_years = std::min(*wear.life_years, usage.drive_life_years.value_or(1e300));
  }
  return usage;
}

// The whole report of one configuration. Three iterations where they give the search's time.
Prediction predict_with(const Evaluator& evaluator, std::vector<Override> sets, Seconds expected,
                        Scenario& scenario) {
  constexpr double same = 0.001;
  std::vector<Override> fewer(sets);
  fewer.emplace_back("iterations", "3");
  try {
    scenario = evaluator.scenario(fewer);
    Prediction p = predict(scenario);
    if (std::abs(p.report.iteration_time / expected - 1) <= same) return p;
  } catch (const InputError&) {
    // A policy that needs more iterations says so.
  }
  scenario = evaluator.scenario(sets);
  return predict(scenario);
}

std::string layout_text(const Scenario& scenario) {
  const Workload& w = scenario.workload;
  std::string text = fmt::format("{} data-parallel rank{}", layout_of(scenario).data(),
                                 layout_of(scenario).data() == 1 ? "" : "s");
  if (w.tensor_parallel > 1) text += fmt::format(" of {} tensor-parallel GPUs", w.tensor_parallel);
  if (w.pipeline_parallel > 1) text += fmt::format(", {} pipeline stages", w.pipeline_parallel);
  return text + fmt::format(", micro-batch {} x accumulation {}", w.micro_batch, w.accumulation);
}

void fill(Assessment& a, const Start& start, const Candidate& best, const Job& job,
          const AssessOptions& options) {
  Scenario scenario = start.evaluator->scenario(best.sets);
  Prediction p = predict_with(*start.evaluator, best.sets, best.trial->iteration_time, scenario);
  add_elasticities(p);
  if (options.interval.draws > 0) add_interval(scenario, p, options.interval);
  a.iteration_time = p.report.iteration_time;
  a.tokens_per_second = job.tokens_per_iteration() / a.iteration_time.value();
  a.range = p.report.range;
  a.binding = p.report.elasticities;
  std::ranges::stable_sort(a.binding, std::greater{}, &Report::Elasticity::value);
  a.policy = p.report.facts.policy;
  a.layout = layout_text(scenario);
  a.changes = best.changes;
  a.sets = together(start.sets, best.sets);
  a.assumptions = p.report.facts.assumptions;
  a.usage = usage_of(p.report, *best.trial);
}

}  // namespace

Assessment assess(const Catalog& catalog, const Build& build, const Job& job,
                  const AssessOptions& options) {
  Assessment a{.build = build, .bill = bill_of(catalog, build)};
  const auto is = [&](State state, std::string reason) {
    a.state = state, a.reason = std::move(reason);
    return a;
  };
  if (!build.refusal.empty()) return is(State::refused, build.refusal);
  Start start = start_of(catalog, build, job);
  if (!start.refusal.empty()) return is(State::refused, start.refusal);
  start = better_start(std::move(start), job, options.known);
  a.note = start.note;
  const Evaluator& evaluator = *start.evaluator;
  const Space space = default_space(evaluator.scenario({}), evaluator.values());
  const TuneOptions tuning_options = tune_options(options);
  const Seconds least = least_time(evaluator, space, tuning_options, options.enough);
  if (options.is_stopped()) return is(State::stopped, "interrupted");
  if (least >= options.enough && std::isfinite(least.value())) {
    a.most_tokens_per_second = job.tokens_per_iteration() / least.value();
    return is(State::cannot_win,
              "a cheaper or faster machine is at least as good whatever the "
              "policy, by its bound");
  }
  Tuning tuning;
  try {
    tuning = tune(evaluator, space, tuning_options);
  } catch (const InputError& error) {
    return is(State::refused, first_problem(error));
  }
  if (tuning.is_interrupted) return is(State::stopped, "interrupted");
  a.simulated = tuning.counts.simulated;
  a.is_proved = tuning.is_proved;
  if (!tuning.best) {
    return is(State::does_not_fit,
              tuning.all.empty() ? "does not fit" : trouble_of(tuning.all.front()));
  }
  fill(a, start, *tuning.best, job, options);
  a.state = State::trained;
  a.time = a.iteration_time * (job.tokens / job.tokens_per_iteration());
  a.costs = costs_of(a.bill, catalog.terms, a.usage, a.time);
  return a;
}

}  // namespace tidegate::planner
