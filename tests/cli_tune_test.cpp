#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

/// Searches as people start them: over threads, and over processes where the build has MPI.

using nlohmann::json;
using tidegate::test::Finished;
using tidegate::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

const Words small_search = {
    "tune",   "zero_infinity_70b", "--set",         "workload.network.layers=3",
    "--only", "optimizer,stage",   "--simulations", "60"};

Words joined(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Finished alone(const Words& arguments) {
  return tidegate::test::run(joined({TIDEGATE_EXECUTABLE}, arguments));
}

json answer(const Finished& run) {
  INFO(run.err);
  REQUIRE(run.code == 0);
  return json::parse(run.out);
}

#ifdef TIDEGATE_MPIRUN
// Open MPI: more processes than cores, and started by whoever tests.
Finished over_processes(int count, const Words& arguments) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
  setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 1);
  return tidegate::test::run(
      joined({TIDEGATE_MPIRUN, "-n", std::to_string(count), TIDEGATE_EXECUTABLE}, arguments));
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The process of a rank whose command line names `word`; 0: there is none.
pid_t process_of(const std::string& rank, const std::string& word) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const bool is_ours = text_of(entry.path() / "cmdline").find(word) != std::string::npos;
    const std::string variable = "OMPI_COMM_WORLD_RANK=" + rank;
    if (!is_ours) continue;
    const std::string environment = std::string(1, '\0') + text_of(entry.path() / "environ");
    const std::string wanted = std::string(1, '\0') + variable + std::string(1, '\0');
    if (environment.find(wanted) != std::string::npos) return std::stoi(name);
  }
  return 0;
}

std::size_t lines_in(const std::string& path) {
  std::ifstream in(path);
  std::size_t lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  return lines;
}
#endif

}  // namespace

TEST_CASE("a search has the same answer with one thread and with two", "[cli][tune]") {
  const json one = answer(alone(joined(small_search, {"--json", "--threads", "1"})));
  CHECK(one["counts"]["simulated"] > 10);
  CHECK(answer(alone(joined(small_search, {"--json", "--threads", "2"}))) == one);
}

#ifdef TIDEGATE_MPIRUN
TEST_CASE("a search has the same answer with one process and with several", "[cli][tune][mpi]") {
  const json one = answer(alone(joined(small_search, {"--json", "--threads", "1"})));
  for (const int count : {1, 2, 3}) {
    for (const char* threads : {"1", "2"}) {
      INFO(count << " processes, " << threads << " threads");
      CHECK(answer(over_processes(count, joined(small_search, {"--json", "--threads", threads}))) ==
            one);
    }
  }
}

TEST_CASE("a fault of the input is said once, whatever the number of processes",
          "[cli][tune][mpi]") {
  const Words wrong = {"tune", "zero_infinity_70b", "--set", "workload.network.layres=3"};
  const Finished one = alone(wrong);
  const Finished two = over_processes(2, wrong);
  CHECK(two.code == 2);
  CHECK(two.out.empty());
  // The launcher adds lines of its own.
  const std::size_t at = two.err.find(one.err);
  REQUIRE(at != std::string::npos);
  CHECK(two.err.find("layres", at + one.err.size()) == std::string::npos);
}

TEST_CASE("a search whose process was killed goes on where it was", "[cli][tune][mpi]") {
  const TemporaryFolder folder;
  const std::string results = (folder.path() / "results.jsonl").string();
  // Long enough to be killed on its way.
  const Words search = {"tune",   "mlp_offload_70b", "--json",        "--threads", "1",
                        "--only", "optimizer",       "--simulations", "60"};
  const json whole = answer(alone(search));
  const Words kept = joined(search, {"--results", results});
  auto killed = std::async(std::launch::async, [&] { return over_processes(2, kept); });
  using namespace std::chrono_literals;
  for (int i = 0; i < 3000 && lines_in(results) < 6; ++i) std::this_thread::sleep_for(10ms);
  const pid_t victim = process_of("1", results);
  REQUIRE(victim > 0);
  REQUIRE(::kill(victim, SIGKILL) == 0);
  CHECK(killed.get().code != 0);
  const std::size_t finished = lines_in(results) - 1;
  CHECK(finished >= 5);
  json again = answer(over_processes(2, joined(kept, {"--resume"})));
  // The first line is no result, and the last may have been cut off.
  CHECK(again["counts"]["resumed"] >= finished - 1);
  again["counts"]["resumed"] = whole["counts"]["resumed"];
  CHECK(again == whole);
}
#endif
