#include "validate/bands.hpp"

#include <array>

#include <fmt/core.h>

#include "sim/run/predict.hpp"
#include "validate/quantities.hpp"
#include "validate/run_spec.hpp"

namespace tidegate {
namespace {

struct BandRun {
  Band band;
  std::string quantity;
  RunSpec of, over;
};

std::string read_quantity(const yaml::Node& node) {
  constexpr std::array<std::string_view, 7> names = {
      "iteration", "forward", "backward", "update", "gpu_peak", "host_peak", "activation_peak"};
  return std::string(names[node.choice(names)]);
}

// The common run with the keys of one side.
RunSpec read_side(const yaml::Node& node, RunSpec common) {
  for (Override& o : read_overrides(node)) common.overrides.push_back(std::move(o));
  common.where = node.where();
  return common;
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
}

BandRun read_band(const yaml::Node& node, const std::string& path) {
  BandRun run;
  yaml::Map map = node.map();
  run.band.name = map.text("band");
  run.band.claim = map.text("claim");
  run.band.source = map.text("source");
  read_bounds(map, run.band);
  read_standing(map, run.band);
  run.quantity = read_quantity(map.at("quantity"));
  const RunSpec common = read_run_spec(map, path);
  run.of = read_side(map.at("of"), common);
  run.over = read_side(map.at("over"), common);
  return run;
}

double predicted(const RunSpec& spec, const BandRun& run) {
  Scenario scenario = load_run(spec, "band " + run.band.name);
  const Report report = predict(scenario).report;
  return predicted_quantities(report).at(run.quantity);
}

}  // namespace

void add_bands(yaml::Value tree, const std::string& path, Selection& selection, Published& result) {
  yaml::Document document(std::move(tree));
  std::vector<BandRun> runs;
  {
    yaml::Map root = document.root().map();
    result.band_title = root.text("title");
    for (const yaml::Node& node : root.at("bands").items()) runs.push_back(read_band(node, path));
  }
  document.finish();
  for (BandRun& run : runs) {
    if (!selection.takes(run.band.name)) continue;
    run.band.value = predicted(run.of, run) / predicted(run.over, run);
    result.bands.push_back(std::move(run.band));
  }
}

}  // namespace tidegate
