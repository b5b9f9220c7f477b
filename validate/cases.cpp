#include "validate/cases.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "sim/run/interval.hpp"
#include "sim/run/predict.hpp"
#include "validate/quantities.hpp"
#include "validate/run_spec.hpp"

namespace tidegate {
namespace {

struct Variant {
  std::string name, note;
  RunSpec spec;
  std::vector<std::string> calibrates;
  std::vector<std::pair<std::string, double>> measured;
};
struct Case {
  std::string name;
  std::int64_t parameters = 0;
  Where parameters_where;
  std::vector<Variant> variants;
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

// Rows are told apart by their names.
template <class Named>
void check_new(const yaml::Node& node, const std::vector<Named>& earlier, const std::string& name) {
  if (std::ranges::find(earlier, name, &Named::name) != earlier.end()) {
    node.problem(fmt::format("is a second '{}'; names must differ", name));
  }
}

Variant read_variant(const yaml::Node& node, const std::vector<Override>& of_case,
                     const std::string& path) {
  Variant variant;
  yaml::Map map = node.map();
  variant.name = map.text("variant");
  variant.spec = read_run_spec(map, path, of_case);
  variant.note = map.text_or("note", "");
  if (const auto list = map.find("calibrates")) {
    const std::vector<std::string_view> names = quantity_names();
    for (const yaml::Node& item : list->items()) {
      variant.calibrates.emplace_back(names[item.choice(names)]);
    }
  }
  read_measured(map.at("measured"), variant);
  return variant;
}

Case read_case(const yaml::Node& node, const std::string& path) {
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
    Variant variant = read_variant(v, overrides, path);
    check_new(v, c.variants, variant.name);
    c.variants.push_back(std::move(variant));
  }
  if (variants.is_sequence() && c.variants.empty())
    variants.problem("is empty; give one variant or more");
  return c;
}

std::vector<Case> read_cases(const yaml::Node& node, const std::string& path) {
  std::vector<Case> cases;
  for (const yaml::Node& item : node.items()) {
    Case c = read_case(item, path);
    check_new(item, cases, c.name);
    cases.push_back(std::move(c));
  }
  if (node.is_sequence() && cases.empty()) node.problem("is empty; give one case or more");
  return cases;
}

PublishedRow row_of(const Case& c, const Variant& v, const std::string& name, double predicted,
                    double measured) {
  const Quantity& q = quantity_of(name);
  PublishedRow row{.set = 0,
                   .case_name = c.name,
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
void run_case(const Case& c, std::int32_t draws, Published& result) {
  double baseline = 0;
  for (const Variant& v : c.variants) {
    Scenario scenario = load_run(v.spec, fmt::format("{} of case {}", v.name, c.name));
    RunSet& set = result.sets.back();
    set.profile = scenario.machine.name();
    Prediction p = predict(scenario);
    if (draws > 0) add_interval(scenario, p, {.draws = draws, .model_deviation = 0});
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
      result.rows.back().set = result.sets.size() - 1;
      if (p.report.range && name == "iteration") {
        result.rows.back().profile_deviation = p.report.range->profile_deviation;
      }
    }
    if (!v.note.empty()) result.notes.push_back(fmt::format("{} {}: {}", c.name, v.name, v.note));
  }
}

}  // namespace

bool PublishedRow::is_missed() const { return gate && std::abs(relative_error()) > *gate; }

void add_cases(yaml::Value tree, const std::string& path, Selection& selection, std::int32_t draws,
               Published& result) {
  yaml::Document document(std::move(tree));
  std::vector<Case> cases;
  RunSet set;
  {
    yaml::Map root = document.root().map();
    set.title = root.text("title");
    set.name = root.text_or("name", set.title);
    set.source = root.text("source");
    set.note = root.text_or("note", "");
    cases = read_cases(root.at("cases"), path);
  }
  document.finish();
  bool is_new = true;
  for (const Case& c : cases) {
    if (!selection.takes(c.name)) continue;
    if (is_new) result.sets.push_back(set);
    is_new = false;
    run_case(c, draws, result);
  }
}

}  // namespace tidegate
