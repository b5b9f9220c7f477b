#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/mpirun.hpp"
#include "tests/subprocess.hpp"

/// `tidegate calib` on two processes of one machine, as a cluster would run it. Numbers are not
/// looked at: other tests may run meanwhile (--ungated).

using nlohmann::json;
using tidegate::test::allow_any_number;
using tidegate::test::Finished;
using tidegate::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

// mpirun -n COUNT tidegate calib FLAGS
Finished on_all(int count, const Words& flags) {
  allow_any_number();
  Words all = {TIDEGATE_MPIEXEC, "-n", std::to_string(count), TIDEGATE_EXECUTABLE, "calib"};
  all.insert(all.end(), flags.begin(), flags.end());
  return tidegate::test::run(all);
}

// mpirun -n 1 tidegate calib FIRST : -n 1 tidegate calib SECOND
Finished on_two(const Words& first, const Words& second) {
  allow_any_number();
  Words all = {TIDEGATE_MPIEXEC};
  for (const Words& own : {first, second}) {
    if (all.size() > 1) all.emplace_back(":");
    all.insert(all.end(), {"-n", "1", TIDEGATE_EXECUTABLE, "calib"});
    all.insert(all.end(), own.begin(), own.end());
  }
  return tidegate::test::run(all);
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// A workstation that ships with the program, with the network and the paths of a measured profile.
std::string workstation_with(const std::string& measured) {
  const fs::path profiles = fs::path(TIDEGATE_SOURCE_DIR) / "hw_profiles";
  std::string text = text_of(profiles / "workstation_rtx4090.yaml");
  text.resize(text.find("\npaths:"));
  const std::string folder = "components/";
  text.replace(text.find(folder), folder.size(), (profiles / folder).string());
  const std::size_t from = measured.find("\nnetwork:"), to = measured.find("\ncalibration:");
  return text + measured.substr(from, to - from);
}

// A network of one block whose optimizer state lies on `pfs`.
constexpr const char* scenario = R"(
name: a block on a shared file system
workload:
  network: {family: decoder, layers: 1, hidden: 256, ffn: 512, heads: 4, vocabulary: 1024}
  sequence: 128
  micro_batch: 1
  accumulation: 1
  dtype: bf16
hardware: node.yaml
ranks: 1
policy:
  zero: {stage: 3}
  parameters: resident
  optimizer: {name: zero_infinity, path: pfs}
)";

Words small(const fs::path& out, const Words& more) {
  Words all = {"--quick",     "--ungated", "--passes",       "1",     "--threads",       "1",
               "--file-size", "32 MiB",    "--write-budget", "2 GiB", "--node-per-rank", "-o",
               out.string()};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("what two nodes share is measured by both at once and simulated as shared", "[calib]") {
  const TemporaryFolder folder, storage;
  const fs::path out = folder.path() / "node.yaml";
  const Words flags =
      small(out, {"--storage", "pfs=" + storage.path().string(), "--only", "storage"});
  const Finished run = on_two(flags, flags);
  INFO(run.err << run.out);
  REQUIRE(run.code == 0);
  CHECK(fs::is_empty(storage.path()));
  const std::string profile = text_of(out);
  CHECK_THAT(profile, Containing("pfs.shared: {verdict: ok, evidence: all 2 processes see one"));
  CHECK_THAT(profile, Containing("client_read: {value:") && Containing("client_write: {value:"));
  CHECK_THAT(profile, Containing("shared: true") && Containing("clients 2, "));
  CHECK_THAT(profile,
             Containing("pfs.shared.read_other:") && Containing("pfs.client_cache: {verdict:"));
  CHECK_THAT(profile, Containing("nodes: {verdict: not_told, evidence: one pass on 2 nodes"));
  // Each client's own rate stands beside those of the nodes.
  CHECK_THAT(profile, Containing("/clients=2: ["));
  folder.write("node.yaml", workstation_with(profile));
  folder.write("scenario.yaml", scenario);
  const Finished simulated =
      tidegate::test::run({TIDEGATE_EXECUTABLE, "simulate", (folder.path() / "scenario.yaml"),
                           "--hardware", out.string(), "--no-fixes", "--draws", "2", "--json"});
  INFO(simulated.err);
  REQUIRE(simulated.code == 0);
  CHECK(json::parse(simulated.out)["iteration_s"].get<double>() > 0);
}

TEST_CASE("a folder that each process has for itself is not called shared", "[calib]") {
  const TemporaryFolder folder, one, other;
  const fs::path out = folder.path() / "node.yaml";
  const auto flags = [&](const TemporaryFolder& storage) {
    return small(out, {"--storage", "pfs=" + storage.path().string(), "--only", "storage"});
  };
  const Finished run = on_two(flags(one), flags(other));
  INFO(run.err << run.out);
  REQUIRE(run.code == 0);
  const std::string profile = text_of(out);
  CHECK_THAT(profile, Containing("each of 2 processes sees its own"));
  CHECK_THAT(profile, !Containing("shared: true") && !Containing("pfs.shared.read"));
}

TEST_CASE("what is wrong for one process ends all of them with its message", "[calib]") {
  const TemporaryFolder folder, storage;
  const fs::path out = folder.path() / "node.yaml";
  const std::string missing = (storage.path() / "missing").string();
  const Finished run =
      on_two(small(out, {"--storage", storage.path().string(), "--only", "storage"}),
             small(out, {"--storage", missing, "--only", "storage"}));
  CHECK(run.code == 2);
  CHECK_THAT(run.err, Containing("process 1: " + missing));
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("what is wrong for all processes is told once, and each other fault too", "[calib]") {
  const TemporaryFolder folder, storage;
  const fs::path out = folder.path() / "node.yaml";
  const auto asking = [&](const std::string& name) {
    const std::string path = (storage.path() / name).string();
    return small(out, {"--storage", path, "--only", "storage"});
  };
  const auto count = [](const std::string& text, const std::string& word) {
    std::size_t times = 0;
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++times;
    return times;
  };
  const Finished same = on_two(asking("first"), asking("first"));
  CHECK(same.code == 2);
  CHECK(count(same.err, "first: No such") == 1);
  const Finished two = on_two(asking("first"), asking("second"));
  CHECK(two.code == 2);
  CHECK(count(two.err, "first: No such") == 1);
  CHECK(count(two.err, "second: No such") == 1);
}

TEST_CASE("a flag that is wrong on every process is told once", "[calib]") {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "node.yaml").string();
  for (const Words& wrong :
       {Words{"--no-such-flag"}, Words{"--write-budget", "much"}, Words{"--passes", "0"},
        Words{"--resume", "--quick", "-o", out, "--node-per-rank"}}) {
    const Finished run = on_all(3, wrong);
    INFO(run.err << run.out);
    CHECK(run.code == 2);
    const std::string said = run.err + run.out;
    const std::size_t first = said.find(wrong[0]);
    REQUIRE(first != std::string::npos);
    CHECK(said.find(wrong[0], first + 1) == std::string::npos);
  }
}
