#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "sim/report/words.hpp"
#include "validate/log/comparison.hpp"
#include "validate/log/explain.hpp"

namespace tidegate {
namespace {

Measured measured_of(const std::vector<Logged>& logged, double factor = 1) {
  std::vector<double> values;
  for (const Logged& l : logged) values.push_back(factor * l.value);
  return measured(values);
}

const std::vector<Logged>* find(const LoggedSeries& series, const char* name) {
  const auto at = series.find(name);
  return at == series.end() || at->second.empty() ? nullptr : &at->second;
}

const Report::Pool* pool_of(const Report& report, std::string_view name) {
  const std::string of_first = "node0." + std::string(name);
  const auto at = std::ranges::find_if(
      report.pools, [&](const Report::Pool& p) { return p.name == name || p.name == of_first; });
  return at == report.pools.end() ? nullptr : &*at;
}

void add_phases(const SteadyLog& steady, const Report& report, LogComparison& c) {
  constexpr std::pair<const char*, Phase> phases[] = {
      {"forward", Phase::forward}, {"backward", Phase::backward}, {"update", Phase::update}};
  for (const auto& [name, phase] : phases) {
    const double predicted = report.phases[static_cast<std::size_t>(phase)].value();
    if (const auto* logged = find(steady.series, name)) {
      c.rows.push_back({name, "s", predicted, measured_of(*logged), ""});
    } else {
      c.only_predicted.push_back(fmt::format("{}: {}", name, to_text(Seconds(predicted))));
    }
  }
}

// The iteration as the engine says it, as the sum of its phases, or from samples per second.
void add_iteration(const TrainingLog& log, const SteadyLog& steady, std::int64_t batch,
                   const Report& report, LogComparison& c) {
  const double predicted = report.iteration_time.value();
  const auto* whole = find(steady.series, "iteration");
  const auto* sum = find(steady.series, "phases");
  const auto* rate = find(steady.series, "samples_per_second");
  if (whole) {
    c.rows.push_back({"iteration", "s", predicted, measured_of(*whole), ""});
  } else if (sum) {
    c.rows.push_back({"iteration", "s", predicted, measured_of(*sum),
                      "sum of forward, backward and step; time between them is not logged"});
  } else if (rate) {
    const auto at = log.settings.find("global_batch");
    const auto samples = static_cast<double>(at == log.settings.end() ? batch : at->second.value);
    std::vector<Logged> times = *rate;
    std::erase_if(times, [](const Logged& l) { return l.value <= 0; });
    for (Logged& l : times) l.value = samples / l.value;
    if (times.empty()) return;
    c.rows.push_back(
        {"iteration", "s", predicted, measured_of(times),
         fmt::format("{} sequences ({}) over samples per second", samples,
                     at == log.settings.end() ? "of the scenario" : "as the log says")});
  }
}

void add_speed(const TrainingLog& log, const SteadyLog& steady, std::int64_t batch,
               const Report& report, LogComparison& c) {
  if (const auto* rate = find(steady.series, "samples_per_second")) {
    c.rows.push_back(
        {"samples per second", "1/s", static_cast<double>(batch) / report.iteration_time.value(),
         measured_of(*rate),
         log.is_run_average ? "a mean over the whole run, first iterations included" : ""});
  }
  if (const auto* rate = find(steady.series, "tflops_per_gpu")) {
    c.rows.push_back({"TFLOP/s per GPU", "TFLOP/s", report.model_rate_per_gpu.value() / 1e12,
                      measured_of(*rate), "the engine counts FLOPs by its own formula"});
  }
}

void add_memory(const TrainingLog& log, const SteadyLog& steady, const Report& report,
                LogComparison& c) {
  const Report::Pool* gpu = pool_of(report, "gpu0");
  const Report::Pool* host = pool_of(report, "host");
  const auto add = [&](const char* series, const char* name, double predicted, const char* note) {
    const auto* logged = find(steady.series, series);
    if (logged && !(log.is_on_cpu && std::string_view(series).starts_with("gpu"))) {
      const Measured m = measured_of(*logged);
      // A log from before the first allocation says nothing.
      if (m.most > 0) {
        c.rows.push_back({name, "B", predicted, m, note});
        return;
      }
    }
    c.only_predicted.push_back(fmt::format("{}: {}", name, to_text(Bytes(predicted))));
  };
  if (gpu && gpu->allocator) {
    add("gpu_allocated", "GPU memory allocated, peak", gpu->allocator->allocated_peak.value(), "");
    add("gpu_reserved", "GPU memory reserved, peak", gpu->allocator->reserved_peak.value(), "");
  }
  if (host)
    add("host_used", "host memory", host->peak.value(),
        "the log's is of the whole machine at the moments logged");
}

void add_notes(const TrainingLog& log, const SteadyLog& steady, const Report& report,
               LogComparison& c) {
  if (steady.iterations <= 1 && !log.is_run_average)
    c.notes.push_back("One iteration was logged: it is the first, which is slower than others.");
  if (log.is_on_cpu)
    c.notes.push_back(
        "DeepSpeed ran on the CPU: what it calls allocated is the whole process's memory, which is "
        "not compared.");
  if (log.skipped_updates > 0)
    c.notes.push_back(
        fmt::format("The loss scaler left out {} updates; their short steps count as iterations.",
                    log.skipped_updates));
  if (log.is_cut)
    c.notes.push_back("The last line has no end (the run goes on, or was stopped): left out.");
  if (steady.ranks > 1 && steady.rank_ratio > 1.05)
    c.notes.push_back(fmt::format("The slowest rank takes {:.2f} times what the fastest takes.",
                                  steady.rank_ratio));
  if (!report.fits)
    c.notes.push_back(
        "The prediction says that this run does not fit; its times are those of a "
        "machine with enough memory.");
  if (!log.is_on_cpu && std::ranges::find(log.writers, "DeepSpeed") != log.writers.end() &&
      log.series.contains("phases"))
    c.notes.push_back(
        "With wall_clock_breakdown DeepSpeed waits for the GPU at every timer, which "
        "the prediction does not.");
}

}  // namespace

const LogRow* LogComparison::row(const std::string& name) const {
  const auto at = std::ranges::find(rows, name, &LogRow::name);
  return at == rows.end() ? nullptr : &*at;
}

LogComparison compare(const TrainingLog& log, const Scenario& scenario, const Report& report) {
  const SteadyLog steady = steady_part(log);
  LogComparison c{.scenario = scenario.name,
                  .profile = scenario.machine.name(),
                  .file = log.file,
                  .writers = log.writers,
                  .iterations = steady.iterations,
                  .skipped = steady.skipped,
                  .is_run_average = log.is_run_average,
                  .rank = steady.rank,
                  .ranks = steady.ranks,
                  .rank_ratio = steady.rank_ratio,
                  .damaged = log.damaged};
  const std::int64_t batch = global_batch_of(scenario, report);
  add_phases(steady, report, c);
  add_iteration(log, steady, batch, report, c);
  add_speed(log, steady, batch, report, c);
  add_memory(log, steady, report, c);
  const auto other = report.phases[static_cast<std::size_t>(Phase::other)];
  if (other > Seconds(0)) c.only_predicted.push_back("other: " + to_text(other));
  for (const auto& [name, logged] : steady.timers)
    c.only_logged.push_back({name, measured_of(logged), why_alone(name)});
  c.mismatches = mismatches_of(log, steady, scenario, report);
  add_notes(log, steady, report, c);
  c.explanations = explanations_of(c, report);
  return c;
}

}  // namespace tidegate
