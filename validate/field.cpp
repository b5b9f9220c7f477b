#include "validate/field.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include <fmt/core.h>

#include "sim/run/predict.hpp"
#include "validate/field_cases.hpp"

namespace tidegate {
namespace {

constexpr double gate = 0.15;

// Owners that hold model states, as estimators count them: no activations, buffers or processes.
constexpr std::array<std::string_view, 8> state_owners = {
    "parameters",         "parameter shards", "persistent parameters", "gradients",
    "gradient partition", "optimizer states", "fp32 gradients",        "16-bit gradients"};

const Report::Pool& pool_of(const Report& report, std::string_view name) {
  const auto at = std::ranges::find(report.pools, name, &Report::Pool::name);
  ensure(at != report.pools.end(), "a report has the pools of its node");
  return *at;
}

double states_of(const Report::Pool& pool) {
  double bytes = 0;
  for (const auto& [name, held] : pool.training_owners) {
    if (std::ranges::find(state_owners, name) != state_owners.end())
      bytes += static_cast<double>(held);
  }
  return bytes;
}

// What one run predicts.
struct Outcome {
  double gpu = 0, gpu_context = 0, gpu_states = 0;
  double host = 0, host_states = 0, system = 0;
  double storage = 0;
  double ranks = 1;
  std::vector<std::string> full;
};

Outcome outcome_of(Scenario& scenario) {
  const Report report = predict(scenario).report;
  const Report::Pool &gpu = pool_of(report, "gpu0"), &host = pool_of(report, "host");
  Outcome o{.gpu = gpu.training_peak.value(),
            .gpu_context = scenario.machine.gpu(0).context.value(),
            .gpu_states = states_of(gpu),
            .host = host.peak.value(),
            .host_states = states_of(host),
            .system = scenario.machine.host().base_use.value(),
            .ranks = static_cast<double>(scenario.ranks)};
  for (const StoragePath& path : scenario.machine.paths())
    o.storage += pool_of(report, path.name).peak.value();
  for (const Report::Overflow& over : report.overflows) {
    const std::string kind = over.pool.starts_with("gpu") ? "gpu" : over.pool;
    if (std::ranges::find(o.full, kind) == o.full.end()) o.full.push_back(kind);
  }
  return o;
}

struct Answer {
  double bytes = 0;
  const char* measure = "";
};

Answer predict_quantity(std::string_view quantity, const Outcome& o, const Outcome& first) {
  if (quantity == "gpu_allocated") return {o.gpu};
  if (quantity == "gpu_reserved") return {o.gpu, "allocated"};
  if (quantity == "gpu_used") return {o.gpu + o.gpu_context, "allocated and context"};
  if (quantity == "gpu_saved") return {first.gpu - o.gpu};
  if (quantity == "host_used") return {o.host};
  if (quantity == "host_process") return {(o.host - o.system) / o.ranks};
  if (quantity == "storage") return {o.storage};
  if (quantity == "gpu_states") return {o.gpu_states};
  if (quantity == "host_states") return {o.host_states};
  ensure(quantity == "all_states", "a quantity of the table is predicted");
  return {o.ranks * o.gpu_states + o.host_states};
}

std::string joined(const std::vector<std::string>& full) {
  std::string text;
  for (const std::string& kind : full) text += (text.empty() ? "" : " and ") + kind;
  return text.empty() ? "fits" : text;
}

Scenario load_run(const FieldReport& report, const FieldRun& run) {
  // Two iterations are enough for memory: the first gathers nothing ahead.
  std::vector<Override> overrides = {{"iterations", "2"}};
  overrides.insert(overrides.end(), run.overrides.begin(), run.overrides.end());
  try {
    return read_scenario(report.scenario, report.facts.name, report.file, overrides);
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    problems.push_back(
        {run.where, "",
         fmt::format("asked for by this run, {} of {}", run.name, report.facts.name)});
    throw InputError(std::move(problems));
  }
}

void run_report(const FieldReport& report, Field& field) {
  std::optional<Outcome> first;
  for (const FieldRun& run : report.runs) {
    Scenario scenario = load_run(report, run);
    const Outcome outcome = outcome_of(scenario);
    if (!first) first = outcome;
    const bool is_gated = report.is_complete && !run.is_estimate;
    for (const auto& [quantity, observed] : run.observed) {
      const Answer p = predict_quantity(quantity, outcome, *first);
      field.rows.push_back({.case_name = report.facts.name,
                            .run = run.name,
                            .quantity = quantity,
                            .measure = p.measure,
                            .predicted = p.bytes,
                            .observed = observed,
                            .is_complete = report.is_complete,
                            .is_estimate = run.is_estimate,
                            .gate = is_gated ? std::optional(gate) : std::nullopt,
                            .note = run.note});
    }
    if (run.verdict.empty()) continue;
    field.verdicts.push_back({.case_name = report.facts.name,
                              .run = run.name,
                              .predicted = joined(outcome.full),
                              .observed = run.verdict,
                              .is_gated = is_gated,
                              .note = run.note});
  }
}

template <class Keep>
void summarize(Field& field, const char* what, Keep keep) {
  FieldSummary s{.what = what};
  for (const FieldRow& row : field.rows) {
    if (!keep(row)) continue;
    const double error = std::abs(row.relative_error());
    s.mean += error;
    ++s.rows;
    if (error < s.worst) continue;
    s.worst = error;
    s.worst_row = fmt::format("{}, {}", row.case_name, row.run);
  }
  if (s.rows == 0) return;
  s.mean /= s.rows;
  field.summary.push_back(std::move(s));
}

void add_summary(Field& field) {
  const auto of = [](const char* place, bool is_complete) {
    return [=](const FieldRow& r) {
      return !r.is_estimate && r.is_complete == is_complete && r.quantity.starts_with(place);
    };
  };
  summarize(field, "GPU memory, inputs complete", of("gpu_", true));
  summarize(field, "host memory, inputs complete", of("host_", true));
  summarize(field, "storage, inputs complete", of("storage", true));
  summarize(field, "GPU memory, some inputs assumed", of("gpu_", false));
  summarize(field, "host memory, some inputs assumed", of("host_", false));
  summarize(field, "estimates of others, not observed",
            [](const FieldRow& r) { return r.is_estimate; });
  for (const FieldRow& row : field.rows) {
    field.gated += row.gate ? 1 : 0;
    field.missed += row.is_missed() ? 1 : 0;
  }
  for (const FieldVerdict& v : field.verdicts) {
    field.gated += v.is_gated ? 1 : 0;
    field.missed += v.is_gated && !v.agrees() ? 1 : 0;
  }
}

}  // namespace

double FieldRow::relative_error() const {
  if (predicted < observed.low) return predicted / observed.low - 1;
  if (predicted > observed.high) return predicted / observed.high - 1;
  return 0;
}

bool FieldRow::is_missed() const { return gate && std::abs(relative_error()) > *gate; }

bool FieldVerdict::agrees() const {
  if (observed == "fits" || predicted == "fits") return observed == predicted;
  return predicted.find(observed) != std::string::npos;
}

Field run_field(const FieldOptions& options) {
  const std::string shipped =
      std::string(TIDEGATE_DATA_DIR) + "/validate/published/field/index.yaml";
  Field field;
  std::string known;
  for (const FieldReport& report : read_field(options.index.empty() ? shipped : options.index)) {
    known += (known.empty() ? "" : ", ") + report.facts.name;
    if (report.facts.name.find(options.only) == std::string::npos) continue;
    field.cases.push_back(report.facts);
    run_report(report, field);
  }
  if (field.cases.empty()) {
    throw InputError(
        fmt::format("--case {}: no case has this in its name; there are: {}", options.only, known));
  }
  add_summary(field);
  return field;
}

}  // namespace tidegate
