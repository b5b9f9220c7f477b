#include "validate/suite/cases.hpp"

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

SuiteCase read_case(const yaml::Node& node) {
  SuiteCase c;
  yaml::Map map = node.map();
  c.name = map.text("name");
  c.cause = map.text_or("cause", "");
  if (const auto changes = map.find("set")) {
    yaml::Map set = changes->map();
    for (const auto& [key, value] : set.all()) c.changes.emplace_back(key, value.text());
  }
  return c;
}

}  // namespace

SuiteFile read_suite(const std::string& path) {
  yaml::Document document(yaml::load_file(path));
  SuiteFile file{.path = path, .scenario = {}, .cases = {}};
  {
    yaml::Map map = document.root().map();
    file.scenario = map.at("scenario").value();
    for (const yaml::Node& node : map.at("cases").items()) file.cases.push_back(read_case(node));
  }
  document.finish();
  return file;
}

std::vector<SuiteCase> chosen(const SuiteFile& file, const std::string& only) {
  std::vector<SuiteCase> cases;
  std::string known;
  for (const SuiteCase& c : file.cases) {
    known += (known.empty() ? "" : ", ") + c.name;
    if (c.name.find(only) != std::string::npos) cases.push_back(c);
  }
  if (cases.empty()) {
    throw InputError(fmt::format("no case has '{}' in its name; there are: {}", only, known));
  }
  return cases;
}

Scenario scenario_of(const SuiteFile& file, const SuiteCase& c, const std::vector<Override>& more) {
  std::vector<Override> changes = c.changes;
  changes.insert(changes.end(), more.begin(), more.end());
  try {
    return read_scenario(file.scenario, c.name, file.path, changes);
  } catch (const InputError& error) {
    throw InputError(fmt::format("case '{}': {}", c.name, error.what()));
  }
}

}  // namespace tidegate
