#include "validate/published.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/core.h>

#include "models/base/yaml.hpp"
#include "sim/run/predict.hpp"
#include "validate/ablation.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;

struct Variant {
  std::string name, scenario, note;
  std::vector<Override> overrides;
  std::vector<std::string> calibrates;
  std::vector<std::pair<std::string, double>> measured;
};
struct Case {
  std::string name;
  std::int64_t parameters = 0;
  std::vector<Variant> variants;
};
struct CaseFile {
  std::string title, source;
  std::vector<Case> cases;
};

// What can be measured, its unit and how it is gated out of sample.
struct Quantity {
  std::string_view name, unit;
  double gate;              // 0: shown only
  double in_sample_gate;
  bool only_above_a_second = false;
};
constexpr std::array quantities = {
    Quantity{"iteration", "s", 0.08, 0},
    Quantity{"forward", "s", 0.10, 0, true},
    Quantity{"backward", "s", 0.10, 0.02, true},
    Quantity{"update", "s", 0.10, 0.02, true},
    Quantity{"first_iteration", "s", 0.08, 0},
    Quantity{"first_forward", "s", 0.10, 0, true},
    Quantity{"first_backward", "s", 0.10, 0, true},
    Quantity{"first_update", "s", 0.10, 0, true},
    Quantity{"gpu_peak", "B", 0.10, 0.10},
    Quantity{"host_peak", "B", 0.10, 0.10},
    Quantity{"speedup", "1", 0.10, 0},
};

const Quantity* find_quantity(std::string_view name) {
  const auto at = std::ranges::find(quantities, name, &Quantity::name);
  return at == quantities.end() ? nullptr : &*at;
}

std::vector<Override> read_overrides(const yaml::Node& node) {
  std::vector<Override> overrides;
  yaml::Map map = node.map();
  for (const auto& [key, value] : map.all()) overrides.emplace_back(key, value.text());
  return overrides;
}

void read_measured(const yaml::Node& node, Variant& variant) {
  yaml::Map map = node.map();
  for (const Quantity& q : quantities) {
    const auto value = map.find(std::string(q.name));
    if (!value) continue;
    const double base = q.unit == "s"   ? value->quantity<Seconds>().value()
                        : q.unit == "B" ? value->quantity<Bytes>().value()
                                        : value->number(0);
    variant.measured.emplace_back(q.name, base);
  }
}

Variant read_variant(const yaml::Node& node, const std::vector<Override>& of_case, const fs::path& dir) {
  Variant variant;
  yaml::Map map = node.map();
  variant.name = map.text("variant");
  variant.scenario = (dir / map.text("scenario")).lexically_normal().string();
  variant.note = map.text_or("note", "");
  variant.overrides = of_case;
  if (const auto set = map.find("set")) {
    for (Override& o : read_overrides(*set)) variant.overrides.push_back(std::move(o));
  }
  if (const auto list = map.find("calibrates")) {
    for (const yaml::Node& item : list->items()) {
      variant.calibrates.push_back(item.text());
      if (!find_quantity(item.text())) item.problem("is not a quantity that can be measured");
    }
  }
  read_measured(map.at("measured"), variant);
  return variant;
}

CaseFile read_cases(const std::string& path) {
  yaml::Document document(yaml::load_file(path));
  CaseFile file;
  {
    yaml::Map root = document.root().map();
    file.title = root.text("title");
    file.source = root.text("source");
    for (const yaml::Node& node : root.at("cases").items()) {
      yaml::Map map = node.map();
      Case c{.name = map.text("case"), .parameters = map.count_or("parameters", 0), .variants = {}};
      std::vector<Override> overrides;
      if (const auto set = map.find("set")) overrides = read_overrides(*set);
      for (const yaml::Node& v : map.at("variants").items()) {
        c.variants.push_back(read_variant(v, overrides, fs::path(path).parent_path()));
      }
      file.cases.push_back(std::move(c));
    }
  }
  document.finish();
  return file;
}

double peak_of(const Report& report, std::string_view pool) {
  const auto at = std::ranges::find(report.pools, pool, &Report::Pool::name);
  ensure(at != report.pools.end(), "a report has the pools of its node");
  return at->steady_peak.value();
}

double phase(const PhaseTimes& phases, Phase p) { return phases[static_cast<std::size_t>(p)].value(); }

std::map<std::string, double> predicted_quantities(const Report& report) {
  const Iteration& first = report.iterations.front();
  return {{"iteration", report.iteration_time.value()},
          {"forward", phase(report.phases, Phase::forward)},
          {"backward", phase(report.phases, Phase::backward)},
          {"update", phase(report.phases, Phase::update)},
          {"first_iteration", report.first_iteration_time.value()},
          {"first_forward", phase(first.phases, Phase::forward)},
          {"first_backward", phase(first.phases, Phase::backward)},
          {"first_update", phase(first.phases, Phase::update)},
          {"gpu_peak", peak_of(report, "gpu0")},
          {"host_peak", peak_of(report, "host")}};
}

PublishedRow row_of(const Case& c, const Variant& v, const std::string& name, double predicted, double measured) {
  const Quantity& q = *find_quantity(name);
  PublishedRow row{.case_name = c.name,
                   .variant = v.name,
                   .quantity = name,
                   .unit = std::string(q.unit),
                   .predicted = predicted,
                   .measured = measured,
                   .in_sample = std::ranges::find(v.calibrates, name) != v.calibrates.end(),
                   .gate = {}};
  const double gate = row.in_sample ? q.in_sample_gate : q.gate;
  if (gate > 0 && (!q.only_above_a_second || measured > 1)) row.gate = gate;
  return row;
}

// One case: every variant predicted, its rows appended; speed-ups are against the first variant.
void run_case(const Case& c, Published& result) {
  double baseline = 0;
  for (const Variant& v : c.variants) {
    Scenario scenario = load_scenario(v.scenario, v.overrides);
    result.profile = scenario.machine.name();
    const Prediction p = predict(scenario);
    if (c.parameters > 0 && p.graph.parameters != c.parameters) {
      throw InputError(fmt::format("case {}: its shapes give {} parameters, the file says {}", c.name, p.graph.parameters, c.parameters));
    }
    auto predicted = predicted_quantities(p.report);
    if (baseline == 0) baseline = predicted["iteration"];
    predicted["speedup"] = baseline / predicted["iteration"];
    for (const auto& [name, measured] : v.measured) {
      result.rows.push_back(row_of(c, v, name, predicted.at(name), measured));
    }
    if (!v.note.empty()) result.notes.push_back(fmt::format("{} {}: {}", c.name, v.name, v.note));
  }
}

template <class Keep>
PublishedSummary summarize_rows(std::string what, const std::vector<PublishedRow>& rows, Keep keep) {
  PublishedSummary s{.what = std::move(what)};
  for (const PublishedRow& row : rows) {
    if (!keep(row)) continue;
    const double error = std::abs(row.relative_error());
    s.mean += error;
    ++s.rows;
    if (error < s.worst) continue;
    s.worst = error;
    s.worst_row = fmt::format("{} {} {}", row.case_name, row.variant, row.quantity);
  }
  if (s.rows > 0) s.mean /= s.rows;
  return s;
}

bool is_first(const PublishedRow& r) { return r.quantity.starts_with("first_"); }
bool is_iteration(const PublishedRow& r) { return r.quantity == "iteration" || r.quantity == "first_iteration"; }
bool is_memory(const PublishedRow& r) { return r.unit == "B"; }
bool is_phase(const PublishedRow& r) {
  return r.unit == "s" && !is_iteration(r) && r.measured > 1;
}

void add_summary(Published& result) {
  for (const bool in_sample : {false, true}) {
    const std::string suffix = in_sample ? ", in sample" : ", out of sample";
    const auto add = [&](const char* what, bool (*is)(const PublishedRow&)) {
      auto s = summarize_rows(what + suffix, result.rows, [&](const PublishedRow& r) { return is(r) && r.in_sample == in_sample; });
      if (s.rows > 0) result.summary.push_back(std::move(s));
    };
    add("iterations", [](const PublishedRow& r) { return r.quantity == "iteration"; });
    add("phases above 1 s", [](const PublishedRow& r) { return is_phase(r) && !is_first(r); });
    add("first iterations", [](const PublishedRow& r) { return r.quantity == "first_iteration"; });
    add("phases of the first, above 1 s", [](const PublishedRow& r) { return is_phase(r) && is_first(r); });
    add("memory peaks", is_memory);
    add("speed-ups", [](const PublishedRow& r) { return r.quantity == "speedup"; });
  }
  for (const PublishedRow& row : result.rows) {
    result.gated += row.gate ? 1 : 0;
    result.missed += row.is_missed() ? 1 : 0;
  }
}

}  // namespace

bool PublishedRow::is_missed() const { return gate && std::abs(relative_error()) > *gate; }

Published run_published(const PublishedOptions& options) {
  const std::string path = std::string(TIDEGATE_DATA_DIR) + "/validate/published/mlp_offload.yaml";
  const CaseFile file = read_cases(path);
  Published result{.title = file.title, .source = file.source};
  std::string known;
  for (const Case& c : file.cases) {
    known += (known.empty() ? "" : ", ") + c.name;
    if (c.name.find(options.only) != std::string::npos) run_case(c, result);
  }
  if (result.rows.empty()) {
    throw InputError(fmt::format("--case {}: no case has this in its name; there are: {}", options.only, known));
  }
  add_summary(result);
  if (options.ablation) {
    result.ablation = ablation_text(std::string(TIDEGATE_DATA_DIR) + "/scenarios/mlp_offload_70b.yaml");
  }
  return result;
}

}  // namespace tidegate
