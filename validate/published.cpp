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
  Where where;
  std::vector<Override> overrides;
  std::vector<std::string> calibrates;
  std::vector<std::pair<std::string, double>> measured;
};
struct Case {
  std::string name;
  std::int64_t parameters = 0;
  Where parameters_where;
  std::vector<Variant> variants;
};
struct CaseFile {
  std::string title, source;
  std::vector<Case> cases;
};

// What can be measured, its unit and how it is gated out of sample.
struct Quantity {
  std::string_view name, unit;
  double gate;  // 0: shown only
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
    Quantity{"gpu_reserved", "B", 0, 0},
    Quantity{"host_peak", "B", 0.10, 0.10},
    Quantity{"speedup", "1", 0.10, 0},
};

const Quantity& quantity_of(std::string_view name) {
  const auto at = std::ranges::find(quantities, name, &Quantity::name);
  ensure(at != quantities.end(), "a row is of a quantity of the table");
  return *at;
}

std::vector<std::string_view> quantity_names() {
  std::vector<std::string_view> names;
  for (const Quantity& q : quantities) names.push_back(q.name);
  return names;
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
    if (base == 0) value->problem("is 0; an error is relative to what was measured");
    variant.measured.emplace_back(q.name, base);
  }
  if (node.is_map() && variant.measured.empty())
    node.problem("says nothing; give a quantity or more");
}

// Where the scenario of a run is, beside the file of cases.
std::string read_scenario(const yaml::Node& node, const fs::path& dir) {
  const fs::path path = (dir / node.text()).lexically_normal();
  if (node.is_scalar() && !fs::is_regular_file(path)) {
    node.problem(
        fmt::format("there is no file {}; give a scenario relative to this file", path.string()));
  }
  return path.string();
}

// Rows are told apart by their names.
template <class Named>
void check_new(const yaml::Node& node, const std::vector<Named>& earlier, const std::string& name) {
  if (std::ranges::find(earlier, name, &Named::name) != earlier.end()) {
    node.problem(fmt::format("is a second '{}'; names must differ", name));
  }
}

Variant read_variant(const yaml::Node& node, const std::vector<Override>& of_case,
                     const fs::path& dir) {
  Variant variant;
  yaml::Map map = node.map();
  variant.name = map.text("variant");
  variant.where = node.where();
  variant.scenario = read_scenario(map.at("scenario"), dir);
  variant.note = map.text_or("note", "");
  variant.overrides = of_case;
  if (const auto set = map.find("set")) {
    for (Override& o : read_overrides(*set)) variant.overrides.push_back(std::move(o));
  }
  if (const auto list = map.find("calibrates")) {
    const std::vector<std::string_view> names = quantity_names();
    for (const yaml::Node& item : list->items()) {
      variant.calibrates.emplace_back(names[item.choice(names)]);
    }
  }
  read_measured(map.at("measured"), variant);
  return variant;
}

Case read_case(const yaml::Node& node, const fs::path& dir) {
  yaml::Map map = node.map();
  Case c{.name = map.text("case")};
  if (const auto parameters = map.find("parameters")) {
    c.parameters = parameters->count(1);
    c.parameters_where = parameters->where();
  }
  std::vector<Override> overrides;
  if (const auto set = map.find("set")) overrides = read_overrides(*set);
  const yaml::Node variants = map.at("variants");
  for (const yaml::Node& v : variants.items()) {
    Variant variant = read_variant(v, overrides, dir);
    check_new(v, c.variants, variant.name);
    c.variants.push_back(std::move(variant));
  }
  if (variants.is_sequence() && c.variants.empty())
    variants.problem("is empty; give one variant or more");
  return c;
}

CaseFile read_cases(const std::string& path) {
  yaml::Document document(yaml::load_file(path));
  CaseFile file;
  {
    yaml::Map root = document.root().map();
    file.title = root.text("title");
    file.source = root.text("source");
    const yaml::Node cases = root.at("cases");
    for (const yaml::Node& node : cases.items()) {
      Case c = read_case(node, fs::path(path).parent_path());
      check_new(node, file.cases, c.name);
      file.cases.push_back(std::move(c));
    }
    if (cases.is_sequence() && file.cases.empty()) cases.problem("is empty; give one case or more");
  }
  document.finish();
  return file;
}

double peak_of(const Report& report, std::string_view pool) {
  const auto at = std::ranges::find(report.pools, pool, &Report::Pool::name);
  ensure(at != report.pools.end(), "a report has the pools of its node");
  return at->steady_peak.value();
}

double reserved_of(const Report& report, std::string_view pool) {
  const auto at = std::ranges::find(report.pools, pool, &Report::Pool::name);
  ensure(at != report.pools.end() && at->allocator, "a GPU's pool has an allocator");
  return at->allocator->steady_reserved_peak.value();
}

double phase(const PhaseTimes& phases, Phase p) {
  return phases[static_cast<std::size_t>(p)].value();
}

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
          {"gpu_reserved", reserved_of(report, "gpu0")},
          {"host_peak", peak_of(report, "host")}};
}

PublishedRow row_of(const Case& c, const Variant& v, const std::string& name, double predicted,
                    double measured) {
  const Quantity& q = quantity_of(name);
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

// Problems of a run's scenario, with the place of the run in the file of cases.
Scenario load_run(const Case& c, const Variant& v) {
  try {
    return load_scenario(v.scenario, v.overrides);
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    problems.push_back(
        {v.where, "", fmt::format("asked for by this run, {} of case {}", v.name, c.name)});
    throw InputError(std::move(problems));
  }
}

// One case: every variant predicted, its rows appended; speed-ups are against the first variant.
void run_case(const Case& c, Published& result) {
  double baseline = 0;
  for (const Variant& v : c.variants) {
    Scenario scenario = load_run(c, v);
    result.profile = scenario.machine.name();
    const Prediction p = predict(scenario);
    if (c.parameters > 0 && p.graph.parameters != c.parameters) {
      throw InputError(c.parameters_where, "parameters",
                       fmt::format("is {}, but the shapes of case {} give {}", c.parameters, c.name,
                                   p.graph.parameters));
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
PublishedSummary summarize_rows(std::string what, const std::vector<PublishedRow>& rows,
                                Keep keep) {
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
bool is_iteration(const PublishedRow& r) {
  return r.quantity == "iteration" || r.quantity == "first_iteration";
}
bool is_memory(const PublishedRow& r) { return r.quantity.ends_with("_peak"); }
bool is_phase(const PublishedRow& r) { return r.unit == "s" && !is_iteration(r) && r.measured > 1; }

void add_summary(Published& result) {
  for (const bool in_sample : {false, true}) {
    const std::string suffix = in_sample ? ", in sample" : ", out of sample";
    const auto add = [&](const char* what, bool (*is)(const PublishedRow&)) {
      auto s = summarize_rows(what + suffix, result.rows, [&](const PublishedRow& r) {
        return is(r) && r.in_sample == in_sample;
      });
      if (s.rows > 0) result.summary.push_back(std::move(s));
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
  for (const PublishedRow& row : result.rows) {
    result.gated += row.gate ? 1 : 0;
    result.missed += row.is_missed() ? 1 : 0;
  }
}

}  // namespace

bool PublishedRow::is_missed() const { return gate && std::abs(relative_error()) > *gate; }

Published run_published(const PublishedOptions& options) {
  const std::string shipped =
      std::string(TIDEGATE_DATA_DIR) + "/validate/published/mlp_offload.yaml";
  const CaseFile file = read_cases(options.file.empty() ? shipped : options.file);
  Published result{.title = file.title, .source = file.source};
  std::string known;
  for (const Case& c : file.cases) {
    known += (known.empty() ? "" : ", ") + c.name;
    if (c.name.find(options.only) != std::string::npos) run_case(c, result);
  }
  if (result.rows.empty()) {
    throw InputError(
        fmt::format("--case {}: no case has this in its name; there are: {}", options.only, known));
  }
  add_summary(result);
  if (options.ablation) {
    result.ablation =
        ablation_text(std::string(TIDEGATE_DATA_DIR) + "/scenarios/mlp_offload_70b.yaml");
  }
  return result;
}

}  // namespace tidegate
