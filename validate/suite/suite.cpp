#include "validate/suite/suite.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "models/base/yaml.hpp"

namespace tidegate {
namespace {

struct SuiteCase {
  std::string name, cause;
  std::vector<Override> changes;
};

struct SuiteFile {
  yaml::Value scenario;
  std::vector<SuiteCase> cases;
};

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

SuiteFile read_file(const std::string& path) {
  yaml::Document document(yaml::load_file(path));
  SuiteFile file;
  {
    yaml::Map map = document.root().map();
    file.scenario = map.at("scenario").value();
    for (const yaml::Node& node : map.at("cases").items()) file.cases.push_back(read_case(node));
  }
  document.finish();
  return file;
}

SuiteRow run_case(const SuiteCase& c, const SuiteFile& file, const std::string& path,
                  const TrialOptions& options) {
  try {
    Scenario scenario = read_scenario(file.scenario, c.name, path, c.changes);
    const Trial trial = run_trial(scenario, options);
    return {c.name,         scenario.policy.describe(), scenario.machine.name(),
            scenario.ranks, trial.comparison,           trial.tries,
            c.cause};
  } catch (const InputError& error) {
    throw InputError(fmt::format("case '{}': {}", c.name, error.what()));
  }
}

template <class Has>
std::size_t count_rows(const Suite& suite, Has&& has) {
  return static_cast<std::size_t>(std::ranges::count_if(suite.rows, has));
}

bool is_conclusive(const SuiteRow& row) { return row.comparison.verdict != Verdict::inconclusive; }

}  // namespace

double Suite::mean() const {
  double sum = 0;
  for (const SuiteRow& row : rows) {
    if (is_conclusive(row)) sum += std::abs(row.comparison.step.error());
  }
  return conclusive() > 0 ? sum / static_cast<double>(conclusive()) : 0;
}

double Suite::worst() const {
  double most = 0;
  for (const SuiteRow& row : rows) {
    if (is_conclusive(row)) most = std::max(most, std::abs(row.comparison.step.error()));
  }
  return most;
}

std::size_t Suite::conclusive() const { return count_rows(*this, is_conclusive); }

std::size_t Suite::other_peaks() const {
  return count_rows(*this, [](const SuiteRow& r) { return !r.comparison.same_peaks(); });
}

std::size_t Suite::other_orders() const {
  return count_rows(*this, [](const SuiteRow& r) { return !r.comparison.reordered.empty(); });
}

bool Suite::holds() const { return mean() <= mean_gate && worst() <= worst_gate; }

Suite run_suite(const SuiteOptions& options) {
  const std::string path =
      options.file.empty() ? TIDEGATE_DATA_DIR "/validate/suite/paced.yaml" : options.file;
  const SuiteFile file = read_file(path);
  Suite suite{.pace = options.trial.pace, .rows = {}};
  std::string known;
  for (const SuiteCase& c : file.cases) {
    known += (known.empty() ? "" : ", ") + c.name;
    if (c.name.find(options.only) == std::string::npos) continue;
    if (options.progress) options.progress(c.name);
    suite.rows.push_back(run_case(c, file, path, options.trial));
  }
  if (suite.rows.empty()) {
    throw InputError(
        fmt::format("no case has '{}' in its name; there are: {}", options.only, known));
  }
  return suite;
}

}  // namespace tidegate
