#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/sim/planner/small.hpp"
#include "tests/subprocess.hpp"

/// `tidegate plan` as people and scripts meet it.

using namespace tidegate;
using nlohmann::json;
using test::Finished;
using test::TemporaryFolder;

namespace {

const std::string scenario =
    "workload: {network: {layers: 2, hidden: 512, heads: 8, vocabulary: 1000}, sequence: 128}\n"
    "hardware: workstation_rtx4090\npolicy: {}\n";

struct Files {
  TemporaryFolder folder;
  std::string scenario_path = folder.write("s.yaml", scenario);
  std::string catalog_path = folder.write("c.yaml", test::small_catalog());
};

Finished plan(const Files& files, std::vector<std::string> more) {
  std::vector<std::string> all = {
      TIDEGATE_EXECUTABLE, "plan", files.scenario_path, "--catalog", files.catalog_path,
      "--simulations",     "4"};
  all.insert(all.end(), more.begin(), more.end());
  return test::run(all);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("plan answers first, as text, JSON, CSV and a page", "[cli]") {
  const Files files;
  const std::string csv = (files.folder.path() / "plan.csv").string();
  const std::string html = (files.folder.path() / "plan.html").string();
  const Finished text = plan(files, {"--tokens", "1e8"});
  INFO(text.err);
  REQUIRE(text.code == 0);
  CHECK(text.err.empty());
  CHECK_THAT(text.out, Containing("Asked: 100 million tokens"));
  CHECK_THAT(text.out, Containing("Cheapest: 1x card, 1x stick, 64 GiB."));
  CHECK_THAT(text.out, Containing("Prices are examples, not an offer"));
  CHECK(text.out.find("Cheapest:") < text.out.find("per M"));
  const Finished run = plan(files, {"--tokens", "1e8", "--json", "--csv", csv, "--html", html});
  REQUIRE(run.code == 0);
  const json result = json::parse(run.out);
  CHECK(result.at("tokens") == 1e8);
  CHECK(result.at("machines").size() == 2);
  // A header and a line per machine, of as many fields.
  std::istringstream lines(text_of(csv));
  std::string header, line;
  std::getline(lines, header);
  CHECK(header.starts_with("machine,state,"));
  int count = 0;
  for (; std::getline(lines, line); ++count) CHECK(line.starts_with("\"1x card, "));
  CHECK(count == 2);
  CHECK_THAT(text_of(html), Containing("data:image/svg+xml,"));
  CHECK_THAT(text_of(html), Containing("assumed: a"));
}

TEST_CASE("plan's next command runs as it stands and gives its speed", "[cli]") {
  const Files files;
  const Finished run = plan(files, {"--json"});
  REQUIRE(run.code == 0);
  const json machine = json::parse(run.out).at("machines").at(0);
  std::vector<std::string> command = {
      TIDEGATE_EXECUTABLE, "simulate", files.scenario_path, "--json", "--draws", "0"};
  for (const json& set : machine.at("sets")) {
    command.emplace_back("--set");
    command.push_back(set);
  }
  const Finished simulated = test::run(command);
  INFO(simulated.err);
  REQUIRE(simulated.code == 0);
  CHECK(json::parse(simulated.out).at("tokens_per_s").get<double>() ==
        Approx(machine.at("tokens_per_second").get<double>()).epsilon(1e-3));
}

TEST_CASE("plan refuses what it does not know, with exit code 2", "[cli]") {
  const Files files;
  struct Fault {
    std::vector<std::string> flags;
    const char* message;
  };
  const std::vector<Fault> faults = {{{"--tokens", "0"}, "tokens"},
                                     {{"--days", "-1"}, "days"},
                                     {{"--budget", "0"}, "budget"},
                                     {{"--set", "machine.gpus.count=2"}, "come from the catalog"},
                                     {{"--set", "workload.sequense=2"}, "sequence"},
                                     {{"--hardware", "h200_9gpu"}, "h200_9gpu"}};
  for (const Fault& fault : faults) {
    INFO(fault.message);
    const Finished run = plan(files, fault.flags);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, Containing(fault.message));
  }
  const Finished unknown =
      test::run({TIDEGATE_EXECUTABLE, "plan", files.scenario_path, "--catalog", "example_2025"});
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, Containing("did you mean example_2026?"));
  const Finished none = test::run({TIDEGATE_EXECUTABLE, "plan", files.scenario_path});
  CHECK(none.code == 2);
}

TEST_CASE("plan names the place of a fault in the catalog", "[cli]") {
  const TemporaryFolder folder;
  std::string text = test::small_catalog();
  text.replace(text.find("pue:"), 4, "puh:");
  const Finished run = test::run({TIDEGATE_EXECUTABLE, "plan", folder.write("s.yaml", scenario),
                                  "--catalog", folder.write("c.yaml", text)});
  CHECK(run.code == 2);
  CHECK_THAT(run.err, Containing("c.yaml:10:3: terms.puh: unknown key; did you mean 'pue'?"));
}

TEST_CASE("tune writes its search as a page", "[cli]") {
  const Files files;
  const std::string html = (files.folder.path() / "tune.html").string();
  const Finished run = test::run(
      {TIDEGATE_EXECUTABLE, "tune", files.scenario_path, "--only", "ZeRO,batch", "--html", html});
  INFO(run.err);
  REQUIRE(run.code == 0);
  const std::string page = text_of(html);
  CHECK_THAT(page, Containing("<h2 id=\"distance-to-the-bound-title\">"));
  CHECK_THAT(page, Containing("Best iteration"));
}
