#include "validate/log/explain.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "calib/fit/statistics.hpp"
#include "sim/report/words.hpp"

namespace tidegate {
namespace {

std::optional<double> median_of(const SteadyLog& steady, const char* name) {
  const auto at = steady.series.find(name);
  if (at == steady.series.end() || at->second.empty()) return std::nullopt;
  std::vector<double> values;
  for (const Logged& l : at->second) values.push_back(l.value);
  return calib::median(values);
}

struct Expected {
  const char *setting, *what;
  std::int64_t value;
  std::string how;  ///< with {} for the log's value
};

std::vector<Expected> expected(const Scenario& s, const Report& report) {
  const Workload& w = s.workload;
  return {
      {"micro_batch", "sequences per GPU and step", w.micro_batch, "--set workload.micro_batch={}"},
      {"accumulation", "steps of an iteration", w.accumulation, "--set workload.accumulation={}"},
      {"sequence", "tokens per sequence", w.sequence, "--set workload.sequence={}"},
      {"tensor_parallel", "tensor-parallel ranks", w.tensor_parallel,
       "--set workload.tensor_parallel={}"},
      {"pipeline_parallel", "pipeline stages", w.pipeline_parallel,
       "--set workload.pipeline_parallel={}"},
      {"zero_stage", "ZeRO stage", s.policy.zero.stage, "--set policy.zero.stage={}"},
      {"gpus", "GPUs", report.facts.gpus,
       "--set ranks=N for GPUs of a node, --set machine.network.nodes=N for nodes"},
      {"global_batch", "sequences per iteration", global_batch_of(s, report), ""}};
}

std::string filled(const std::string& how, std::int64_t value) {
  const std::size_t at = how.find("{}");
  return at == std::string::npos ? how : how.substr(0, at) + std::to_string(value);
}

std::string batch_change(const Scenario& s, std::int64_t logged, std::int64_t expected_batch) {
  const std::int64_t steps = s.workload.accumulation * logged;
  if (logged > 0 && steps % expected_batch == 0)
    return fmt::format("--set workload.accumulation={}, or another micro-batch",
                       steps / expected_batch);
  return "another micro-batch or other ranks; accumulation alone cannot make it";
}

void add_computed_batch(const SteadyLog& steady, const Scenario& scenario, const Report& report,
                        std::vector<LogMismatch>& found) {
  const auto rate = median_of(steady, "samples_per_second");
  auto time = median_of(steady, "iteration");
  if (!time) time = median_of(steady, "phases");
  if (!rate || !time) return;
  const std::int64_t expected_batch = global_batch_of(scenario, report);
  const double batch = *rate * *time;
  if (std::abs(batch / static_cast<double>(expected_batch) - 1) <= 0.2) return;
  found.push_back({"sequences per iteration",
                   batch,
                   static_cast<double>(expected_batch),
                   {},
                   batch_change(scenario, std::llround(batch), expected_batch)});
}

// Of a phase's row, what the prediction lacks.
double gap(const LogRow& row) { return row.shown() - row.predicted; }

std::string held_by(const Report& report) {
  std::vector<Report::Resource> exposed = report.resources;
  std::ranges::sort(exposed, std::greater{}, &Report::Resource::exposed);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, exposed.size()); ++i) {
    if (exposed[i].exposed <= Seconds(0)) break;
    parts.push_back(fmt::format("{} {}", exposed[i].name,
                                percent_text(share_of(exposed[i].exposed, report.iteration_time))));
  }
  return join(parts, ", ");
}

struct Reason {
  const char *begins, *why;
};
constexpr std::array<Reason, 18> reasons = {{
    {"backward_inner", "part of backward: autograd, with the reductions that it starts"},
    {"backward_allreduce", "part of backward: reductions that are left when autograd is done"},
    // stage3.py, partition_grads: at the boundary, from the hooks of autograd.
    {"swap_out_gradient", "part of backward: the thread that reduces writes gradients out"},
    {"async_swap_gradient", "part of backward: the thread's wait for buffers of gradients"},
    {"optimizer_swap", "part of the update: the thread's wait, not the drive's time"},
    {"optimizer_", "part of the update"},
    {"swap_", "part of the update: the thread's wait, not the drive's time"},
    {"async_swap", "the thread's wait for buffers, not the drive's time"},
    {"gather_", "part of the update or of forward"},
    {"init_optimizer_state", "before the first iteration"},
    {"basic_step", "part of the update"},
    {"compute_norm", "part of the update"},
    {"overflow_check", "part of the update"},
    {"unscale_and_clip", "part of the update"},
    {"update_fp16", "part of the update"},
    {"pipe_", "a pipeline stage's sends and waits"},
    {"batch", "loading of data, which is not simulated"},
    {"train_samples_per_second", "a mean over the whole run, start included"},
}};

}  // namespace

std::int64_t global_batch_of(const Scenario& scenario, const Report& report) {
  return report.facts.tokens_per_iteration / std::max<std::int64_t>(1, scenario.workload.sequence);
}

std::string why_alone(const std::string& timer) {
  for (const Reason& r : reasons) {
    if (timer.starts_with(r.begins)) return r.why;
  }
  if (timer.ends_with("between two prints"))
    return "of the pipeline engine: a sum over steps_per_print steps";
  return "no counterpart";
}

std::vector<LogMismatch> mismatches_of(const TrainingLog& log, const SteadyLog& steady,
                                       const Scenario& scenario, const Report& report) {
  std::vector<LogMismatch> found;
  bool knows_batch = false;
  for (const Expected& e : expected(scenario, report)) {
    const auto at = log.settings.find(e.setting);
    if (at == log.settings.end()) continue;
    const bool is_batch = e.setting == std::string_view("global_batch");
    knows_batch = knows_batch || is_batch;
    // The parts of a batch say more than their product.
    const bool is_said = is_batch && !found.empty();
    if (at->second.value == e.value || is_said) continue;
    found.push_back({e.what, static_cast<double>(at->second.value), static_cast<double>(e.value),
                     at->second.where,
                     is_batch ? batch_change(scenario, at->second.value, e.value)
                              : filled(e.how, at->second.value)});
  }
  if (const auto at = log.settings.find("parameters"); at != log.settings.end()) {
    const auto logged = static_cast<double>(at->second.value);
    const auto ours = static_cast<double>(report.facts.parameters);
    // ZeRO-3 may have divided them by the time they are counted, to nothing on some ranks.
    if (logged > 0 && std::abs(logged / ours - 1) > 0.01)
      found.push_back({"parameters", logged, ours, at->second.where,
                       "another network, or parameters that are not trained"});
  }
  if (const auto steps = median_of(steady, "micro_steps");
      steps && !log.settings.contains("accumulation") &&
      std::llround(*steps) != scenario.workload.accumulation) {
    found.push_back({"steps of an iteration",
                     *steps,
                     static_cast<double>(scenario.workload.accumulation),
                     {},
                     fmt::format("--set workload.accumulation={}", std::llround(*steps))});
  } else if (!knows_batch && found.empty()) {
    add_computed_batch(steady, scenario, report, found);
  }
  return found;
}

std::vector<std::string> explanations_of(const LogComparison& c, const Report& report) {
  std::vector<std::string> lines;
  const LogRow* whole = c.row("iteration");
  if (!whole || std::abs(whole->error().value_or(0)) < 0.02) return lines;
  if (!c.mismatches.empty())
    lines.push_back("The log is of another run than the scenario (above): errors say nothing yet.");
  const LogRow* largest = nullptr;
  for (const char* name : {"forward", "backward", "update"}) {
    const LogRow* row = c.row(name);
    if (row && (!largest || std::abs(gap(*row)) > std::abs(gap(*largest)))) largest = row;
  }
  if (largest) {
    lines.push_back(fmt::format("Most of the difference is in {}: {} measured, {} predicted.",
                                largest->name, to_text(Seconds(largest->shown())),
                                to_text(Seconds(largest->predicted))));
  }
  if (const std::string held = held_by(report); !held.empty())
    lines.push_back("The predicted iteration hangs on " + held +
                    "; a wrong rate of one of them in the profile shows here first.");
  return lines;
}

}  // namespace tidegate
