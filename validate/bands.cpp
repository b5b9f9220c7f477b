#include "validate/bands.hpp"

#include <array>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/run/predict.hpp"
#include "validate/quantities.hpp"
#include "validate/run_spec.hpp"

namespace tidegate {
namespace {

struct Quantity {
  std::string_view name, unit;
};
constexpr std::array quantities = {
    Quantity{"iteration", "s"},       Quantity{"forward", "s"},
    Quantity{"backward", "s"},        Quantity{"update", "s"},
    Quantity{"gpu_peak", "B"},        Quantity{"host_peak", "B"},
    Quantity{"activation_peak", "B"}, Quantity{"offloaded", "B"},
    Quantity{"stored", "B"},          Quantity{"write_bandwidth", "B/s"},
    Quantity{"micro_batch", "1"},
};

struct BandRun {
  Band band;
  Quantity quantity;
  RunSpec of;
  std::optional<RunSpec> over;  // else `given`
  double given = 0;
};

// Named keys of scenarios.
using Sets = std::map<std::string, std::vector<Override>, std::less<>>;

Quantity read_quantity(const yaml::Node& node) {
  std::vector<std::string_view> names;
  for (const Quantity& q : quantities) names.push_back(q.name);
  return quantities.at(node.choice(names));
}

Sets read_sets(yaml::Map& root) {
  Sets sets;
  const auto node = root.find("sets");
  if (!node) return sets;
  yaml::Map map = node->map();
  for (const auto& [name, keys] : map.all()) sets[name] = read_overrides(keys);
  return sets;
}

std::vector<std::string> read_names(yaml::Map& map, const std::string& key, const Sets& sets) {
  std::vector<std::string_view> known;
  for (const auto& [name, keys] : sets) known.emplace_back(name);
  std::vector<std::string> names;
  const auto list = map.find(key);
  if (!list) return names;
  for (const yaml::Node& item : list->items()) {
    if (known.empty()) {
      item.problem("names a set, but this file has none; give it under sets");
    } else {
      names.emplace_back(known[item.choice(known)]);
    }
  }
  if (list->is_sequence() && list->items().empty()) list->problem("is empty; name a set or more");
  return names;
}

void add(std::vector<Override>& overrides, const std::vector<Override>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
}

// The common run with the keys of one side.
RunSpec read_side(const yaml::Node& node, RunSpec common) {
  add(common.overrides, read_overrides(node));
  common.where = node.where();
  return common;
}

void read_over(const yaml::Node& node, const RunSpec& common, BandRun& run) {
  if (!node.is_scalar()) {
    run.over = read_side(node, common);
  } else if (run.quantity.unit == "s") {
    run.given = node.quantity<Seconds>().value();
  } else if (run.quantity.unit == "B") {
    run.given = node.quantity<Bytes>().value();
  } else if (run.quantity.unit == "B/s") {
    run.given = node.quantity<BytesPerSecond>().value();
  } else {
    node.problem("is a value; micro_batch is relative to a run: give its keys");
  }
}

void read_bounds(yaml::Map& map, Band& band) {
  band.low = map.at("low").number(0);
  const yaml::Node high = map.at("high");
  band.high = high.number(0);
  if (band.high < band.low) high.problem(fmt::format("is below low, {}", band.low));
}

void read_standing(yaml::Map& map, Band& band) {
  constexpr std::array<std::string_view, 3> names = {"gated", "shown", "recalled"};
  const std::size_t standing = map.at("standing").choice(names);
  band.is_gated = standing == 0;
  band.is_recalled = standing == 2;
  band.in_sample = map.flag_or("in_sample", false);
}

// One band, or one for each set that `for` names.
void read_band(const yaml::Node& node, const std::string& path, const Sets& sets,
               std::vector<BandRun>& runs) {
  BandRun run;
  yaml::Map map = node.map();
  run.band.group = run.band.name = map.text("band");
  run.band.claim = map.text("claim");
  run.band.source = map.text("source");
  read_bounds(map, run.band);
  read_standing(map, run.band);
  run.quantity = read_quantity(map.at("quantity"));
  RunSpec common = read_run_spec(map, path);
  for (const std::string& name : read_names(map, "with", sets)) {
    add(common.overrides, sets.find(name)->second);
  }
  const yaml::Node of = map.at("of"), over = map.at("over");
  const auto add_run = [&](const RunSpec& spec) {
    run.of = read_side(of, spec);
    read_over(over, spec, run);
    runs.push_back(run);
  };
  const std::vector<std::string> names = read_names(map, "for", sets);
  if (names.empty()) return add_run(common);
  for (const std::string& name : names) {
    RunSpec spec = common;
    add(spec.overrides, sets.find(name)->second);
    run.band.name = run.band.group + ", " + name;
    add_run(spec);
  }
}

// Bands share runs: each is predicted once.
class Runs {
 public:
  using Values = std::map<std::string, double>;

  double value(const RunSpec& spec, const BandRun& run) {
    std::string key = spec.scenario;
    for (const auto& [name, text] : spec.overrides) key += "\n" + name + "=" + text;
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second.at(std::string(run.quantity.name));
    Scenario scenario = load_run(spec, "band " + run.band.name);
    Values values = predicted_quantities(predict(scenario).report);
    values["micro_batch"] = static_cast<double>(scenario.workload.micro_batch);
    return known_.emplace(key, std::move(values)).first->second.at(std::string(run.quantity.name));
  }

  // Largest micro-batch of `of` whose steady GPU peak is no higher than that of `over`, relative to
  // the micro-batch of `over`.
  double micro_batch(BandRun run) {
    const double least = value(*run.over, run);
    run.quantity = {"gpu_peak", "B"};
    const double limit = value(*run.over, run);
    const auto fits = [&](std::int64_t batch) {
      RunSpec spec = run.of;
      spec.overrides.emplace_back("workload.micro_batch", std::to_string(batch));
      return value(spec, run) <= limit;
    };
    std::int64_t low = 0, high = static_cast<std::int64_t>(least);
    while (fits(high)) low = high, high *= 2;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    return static_cast<double>(low) / least;
  }

  double ratio(const BandRun& run) {
    if (run.quantity.name == "micro_batch") return micro_batch(run);
    return value(run.of, run) / (run.over ? value(*run.over, run) : run.given);
  }

 private:
  std::map<std::string, Values> known_;
};

}  // namespace

void add_bands(yaml::Value tree, const std::string& path, Selection& selection, Published& result) {
  yaml::Document document(std::move(tree));
  std::vector<BandRun> list;
  {
    yaml::Map root = document.root().map();
    result.band_title = root.text("title");
    const Sets sets = read_sets(root);
    for (const yaml::Node& node : root.at("bands").items()) read_band(node, path, sets, list);
  }
  document.finish();
  Runs runs;
  for (BandRun& run : list) {
    if (!selection.takes(run.band.name)) continue;
    run.band.value = runs.ratio(run);
    result.bands.push_back(std::move(run.band));
  }
}

}  // namespace tidegate
