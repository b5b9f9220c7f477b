#include "validate/published.hpp"

#include <cmath>

#include <fmt/core.h>

#include "models/base/yaml.hpp"
#include "sim/run/interval.hpp"
#include "validate/ablation.hpp"
#include "validate/bands.hpp"
#include "validate/cases.hpp"
#include "validate/discrepancy.hpp"
#include "validate/model_runs.hpp"

namespace tidegate {
namespace {

std::string name_of(const PublishedRow& row) {
  return fmt::format("{} {} {}", row.case_name, row.variant, row.quantity);
}
std::string name_of(const ModelRow& row) { return fmt::format("{} {}", row.run, row.quantity); }

template <class Row, class Keep>
void add_summary(Published& result, std::string what, const std::vector<Row>& rows, Keep keep) {
  PublishedSummary s{.what = std::move(what)};
  for (const Row& row : rows) {
    if (!keep(row)) continue;
    const double error = std::abs(row.relative_error());
    s.mean += error;
    ++s.rows;
    if (error < s.worst) continue;
    s.worst = error;
    s.worst_row = name_of(row);
  }
  if (s.rows == 0) return;
  s.mean /= s.rows;
  result.summary.push_back(std::move(s));
}

bool is_first(const PublishedRow& r) { return r.quantity.starts_with("first_"); }
bool is_iteration(const PublishedRow& r) {
  return r.quantity == "iteration" || r.quantity == "first_iteration";
}
bool is_memory(const PublishedRow& r) { return r.quantity.ends_with("_peak"); }
bool is_phase(const PublishedRow& r) { return r.unit == "s" && !is_iteration(r) && r.measured > 1; }

void summarize_set(Published& result, std::size_t set) {
  for (const bool in_sample : {false, true}) {
    const std::string prefix = result.sets[set].name + ": ";
    const std::string suffix = in_sample ? ", in sample" : ", out of sample";
    const auto add = [&](const char* what, bool (*is)(const PublishedRow&)) {
      add_summary(result, prefix + what + suffix, result.rows, [&](const PublishedRow& r) {
        return r.set == set && is(r) && r.in_sample == in_sample;
      });
    };
    add("iterations", [](const PublishedRow& r) { return r.quantity == "iteration"; });
    add("phases above 1 s", [](const PublishedRow& r) { return is_phase(r) && !is_first(r); });
    add("first iterations", [](const PublishedRow& r) { return r.quantity == "first_iteration"; });
    add("phases of the first, above 1 s",
        [](const PublishedRow& r) { return is_phase(r) && is_first(r); });
    add("memory peaks", is_memory);
    add("reserved GPU memory", [](const PublishedRow& r) { return r.quantity == "gpu_reserved"; });
    add("speed-ups", [](const PublishedRow& r) { return r.quantity == "speedup"; });
  }
}

void summarize_models(Published& result) {
  const auto& rows = result.model_rows;
  add_summary(result, "another model's values", rows,
              [](const ModelRow& r) { return !r.is_recalled; });
  add_summary(result, "recalled values", rows, [](const ModelRow& r) { return r.is_recalled; });
}

// Of iterations out of sample, but for those of one case.
double model_deviation_without(const Published& result, const std::string& left_out) {
  std::vector<Miss> misses;
  for (const PublishedRow& row : result.rows) {
    if (!row.profile_deviation || row.in_sample || row.case_name == left_out) continue;
    misses.push_back({std::log(row.measured / row.predicted), *row.profile_deviation});
  }
  return model_deviation(misses);
}

// No case's interval knows what was measured of that case.
void add_model_deviations(Published& result) {
  for (PublishedRow& row : result.rows) {
    if (!row.profile_deviation) continue;
    row.model_deviation = model_deviation_without(result, row.case_name);
    result.model_deviation = model_deviation_without(result, "");
  }
}

void count_inside(Published& result) {
  for (const bool in_sample : {false, true}) {
    PublishedCoverage coverage{.what = in_sample ? "in sample" : "out of sample"};
    for (const PublishedRow& row : result.rows) {
      if (!row.profile_deviation || row.in_sample != in_sample) continue;
      ++coverage.rows;
      coverage.inside += row.is_inside() ? 1 : 0;
    }
    if (coverage.rows > 0) result.coverage.push_back(coverage);
  }
}

void count_gates(Published& result) {
  const auto count = [&result](bool is_gated, bool is_missed) {
    result.gated += is_gated ? 1 : 0;
    result.missed += is_missed ? 1 : 0;
  };
  for (const PublishedRow& row : result.rows) count(row.gate.has_value(), row.is_missed());
  for (const ModelRow& row : result.model_rows) count(row.gate.has_value(), row.is_missed());
  for (const Band& band : result.bands) count(band.is_gated, band.is_missed());
}

const std::string data = TIDEGATE_DATA_DIR;

std::vector<std::string> files_of(const PublishedOptions& options) {
  if (!options.file.empty()) return {options.file};
  const std::string folder = data + "/validate/published/";
  return {folder + "mlp_offload.yaml", folder + "megatron_a100.yaml", folder + "ssdtrain_cost.yaml",
          folder + "ssdtrain_bands.yaml"};
}

// The list that a file has says of which kind it is.
void add_file(const std::string& path, const PublishedOptions& options, Selection& selection,
              Published& result) {
  yaml::Value root = yaml::load_file(path);
  if (root.find("bands")) {
    add_bands(std::move(root), path, selection, result);
  } else if (root.find("runs")) {
    add_model_runs(std::move(root), selection, result);
  } else {
    add_cases(std::move(root), path, selection, options.draws, result);
  }
}

}  // namespace

std::optional<std::pair<double, double>> PublishedRow::range() const {
  if (!profile_deviation) return std::nullopt;
  const double reach = nine_in_ten * std::hypot(*profile_deviation, model_deviation);
  return std::pair(predicted * std::exp(-reach), predicted * std::exp(reach));
}

bool PublishedRow::is_inside() const {
  const auto within = range();
  return within && within->first <= measured && measured <= within->second;
}

Published run_published(const PublishedOptions& options) {
  Published result;
  Selection selection(options.only);
  for (const std::string& path : files_of(options)) add_file(path, options, selection, result);
  if (selection.is_empty()) {
    throw InputError(fmt::format("--case {}: no case has this in its name; there are: {}",
                                 options.only, selection.known()));
  }
  for (std::size_t set = 0; set < result.sets.size(); ++set) summarize_set(result, set);
  summarize_models(result);
  add_model_deviations(result);
  count_inside(result);
  count_gates(result);
  if (options.ablation) result.ablation = ablation_text(data + "/scenarios/mlp_offload_70b.yaml");
  return result;
}

}  // namespace tidegate
