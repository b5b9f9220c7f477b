#include "validate/run_spec.hpp"

#include <filesystem>

#include <fmt/core.h>

namespace tidegate {
namespace {

namespace fs = std::filesystem;

std::string read_scenario(const yaml::Node& node, const fs::path& dir) {
  const fs::path path = (dir / node.text()).lexically_normal();
  if (node.is_scalar() && !fs::is_regular_file(path)) {
    node.problem(
        fmt::format("there is no file {}; give a scenario relative to this file", path.string()));
  }
  return path.string();
}

}  // namespace

std::vector<Override> read_overrides(const yaml::Node& node) {
  std::vector<Override> overrides;
  yaml::Map map = node.map();
  for (const auto& [key, value] : map.all()) overrides.emplace_back(key, value.text());
  return overrides;
}

RunSpec read_run_spec(yaml::Map& map, const std::string& path, std::vector<Override> overrides) {
  RunSpec spec{.scenario = read_scenario(map.at("scenario"), fs::path(path).parent_path()),
               .overrides = std::move(overrides),
               .where = map.node().where()};
  if (const auto set = map.find("set")) {
    for (Override& o : read_overrides(*set)) spec.overrides.push_back(std::move(o));
  }
  return spec;
}

Scenario load_run(const RunSpec& spec, const std::string& who) {
  try {
    return load_scenario(spec.scenario, spec.overrides);
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    problems.push_back({spec.where, "", "asked for by this run, " + who});
    throw InputError(std::move(problems));
  }
}

}  // namespace tidegate
