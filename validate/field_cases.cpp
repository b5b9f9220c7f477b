#include "validate/field_cases.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/core.h>

namespace tidegate {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> quantities = {
    "gpu_allocated", "gpu_reserved", "gpu_used",   "gpu_saved",   "host_used",
    "host_process",  "storage",      "gpu_states", "host_states", "all_states"};
constexpr std::array<std::string_view, 3> verdicts = {"fits", "gpu", "host"};
constexpr std::array<std::string_view, 2> completeness = {"complete", "partial"};

Observed read_observed(const yaml::Node& node) {
  if (!node.is_sequence()) {
    const double value = node.quantity<Bytes>().value();
    return {value, value};
  }
  const std::vector<yaml::Node> ends = node.items();
  if (ends.size() != 2) {
    node.problem("is no range; write [least, most]");
    return {1, 1};
  }
  const Observed range{ends[0].quantity<Bytes>().value(), ends[1].quantity<Bytes>().value()};
  if (range.low > range.high) node.problem("is no range; the least comes first");
  return range;
}

void read_observations(yaml::Map& map, FieldRun& run) {
  const yaml::Node node = map.at("observed");
  yaml::Map observed = node.map();
  for (const std::string_view name : quantities) {
    if (const auto value = observed.find(std::string(name)))
      run.observed.emplace_back(name, read_observed(*value));
  }
  if (const auto verdict = observed.find("verdict"))
    run.verdict = verdicts.at(verdict->choice(verdicts));
  if (node.is_map() && run.observed.empty() && run.verdict.empty())
    node.problem("says nothing; give a quantity or a verdict");
}

// A run that is simulated goes to `runs`, another to the reasons why not.
void read_run(const yaml::Node& node, FieldReport& report) {
  yaml::Map map = node.map();
  FieldRun run{.name = map.text("run"), .note = map.text_or("note", ""), .where = node.where()};
  if (std::ranges::find(report.runs, run.name, &FieldRun::name) != report.runs.end())
    node.problem(fmt::format("is a second '{}'; names must differ", run.name));
  if (const auto reason = map.find("not_simulated")) {
    report.facts.not_simulated.push_back(run.name + ": " + reason->text());
    return;
  }
  if (const auto set = map.find("set")) {
    yaml::Map overrides = set->map();
    for (const auto& [key, value] : overrides.all()) run.overrides.emplace_back(key, value.text());
  }
  run.is_estimate = map.flag_or("estimate", false);
  // A run that others are compared with need not say more.
  if (!map.flag_or("reference", false)) read_observations(map, run);
  report.runs.push_back(std::move(run));
}

void read_report(const std::string& path, FieldReport& report) {
  yaml::Document document(yaml::load_file(path));
  {
    yaml::Map root = document.root().map();
    report.file = path;
    report.facts.title = root.text("title");
    report.facts.source = root.text("source");
    report.is_complete = root.at("inputs").choice(completeness) == 0;
    if (const auto assumed = root.find("assumed")) {
      for (const yaml::Node& item : assumed->items()) report.facts.assumed.push_back(item.text());
    }
    report.scenario = root.at("scenario").value();
    const yaml::Node runs = root.at("runs");
    for (const yaml::Node& node : runs.items()) read_run(node, report);
    if (runs.is_sequence() && report.runs.empty())
      runs.problem("simulates nothing; give one run or more, or say not_simulated in the index");
  }
  document.finish();
}

FieldReport read_entry(const yaml::Node& node, const fs::path& dir) {
  FieldReport report;
  yaml::Map map = node.map();
  report.facts.name = map.text("case");
  const auto published = map.find("published");
  const auto reason = map.find("not_simulated");
  if (published && reason) reason->problem("is said of a case that is predicted elsewhere");
  if (published || reason) {
    report.facts.title = map.text("title");
    report.facts.source = map.text("source");
    if (published) {
      report.facts.elsewhere = "tidegate validate published --case " + published->text();
    } else {
      report.facts.not_simulated.push_back(reason->text());
    }
    return report;
  }
  const fs::path file = dir / (report.facts.name + ".yaml");
  if (!fs::is_regular_file(file)) {
    node.problem(
        fmt::format("has no file {}; write it, or say published or not_simulated", file.string()));
    return report;
  }
  report.file = file.string();
  return report;
}

}  // namespace

std::vector<std::string_view> field_quantities() { return {quantities.begin(), quantities.end()}; }

std::vector<FieldReport> read_field(const std::string& index) {
  yaml::Document document(yaml::load_file(index));
  std::vector<FieldReport> reports;
  {
    yaml::Map root = document.root().map();
    const yaml::Node cases = root.at("cases");
    for (const yaml::Node& node : cases.items()) {
      FieldReport report = read_entry(node, fs::path(index).parent_path());
      const auto same = [&](const FieldReport& r) { return r.facts.name == report.facts.name; };
      if (std::ranges::any_of(reports, same))
        node.problem(fmt::format("is a second '{}'; a report is listed once", report.facts.name));
      reports.push_back(std::move(report));
    }
    if (cases.is_sequence() && reports.empty()) cases.problem("is empty; give one case or more");
  }
  document.finish();
  for (FieldReport& report : reports) {
    if (!report.file.empty()) read_report(report.file, report);
  }
  return reports;
}

}  // namespace tidegate
