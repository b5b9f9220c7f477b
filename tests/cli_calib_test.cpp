#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

/// `tidegate calib` as people meet it: what it refuses, what it writes, and that nothing is left of
/// it however it ends. Numbers are not looked at: other tests may run meanwhile (--ungated).

using nlohmann::json;
using tidegate::test::Finished;
using tidegate::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

Finished calib(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {TIDEGATE_EXECUTABLE, "calib"});
  return tidegate::test::run(arguments);
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

void check_wrong(const std::vector<std::string>& flags, const std::string& message) {
  const Finished run = calib(flags);
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK(run.out.empty());
  CHECK_THAT(run.err, Containing(message));
}

const std::vector<std::string> small = {"--quick", "--ungated",      "--file-size",
                                        "64 MiB",  "--write-budget", "2 GiB"};

std::vector<std::string> small_run(const fs::path& storage, const fs::path& out,
                                   std::vector<std::string> more) {
  std::vector<std::string> all = small;
  all.insert(all.end(), {"--storage", storage.string(), "-o", out.string()});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Starts calib, sends it `signal` after `seconds`, and waits for its end.
void run_and_kill(const std::vector<std::string>& arguments, int signal, double seconds) {
  std::vector<std::string> all = {TIDEGATE_EXECUTABLE, "calib"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  kill(child, signal);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
}

}  // namespace

TEST_CASE("wrong flags of calib are refused before anything is written", "[calib]") {
  const TemporaryFolder folder;
  const fs::path storage = folder.path() / "drive", other = folder.path() / "other";
  fs::create_directories(storage);
  fs::create_directories(other);
  const std::string here = storage.string(), out = (folder.path() / "node.yaml").string();
  check_wrong({"--storage", here}, "--out is missing; write -o my_node.yaml");
  check_wrong({"--storage", here, "-o", "node.txt"}, "ends in .yaml");
  check_wrong({"--storage", here, "-o", (folder.path() / "no/node.yaml").string()},
              "there is no folder");
  check_wrong({"--storage", (folder.path() / "no").string(), "-o", out}, "/no");
  check_wrong({"--storage", folder.write("file", "x"), "-o", out}, "file");
  check_wrong({"--storage", "/dev/null", "-o", out}, "/dev/null");
  check_wrong({"--storage", "NVMe=" + here, "-o", out},
              "'NVMe' is no name of a path; use small letters");
  check_wrong({"--storage", "a=" + here, "--storage", "a=" + other.string(), "-o", out},
              "two --storage have the name 'a'");
  check_wrong({"--storage", here, "-o", out, "--only", "storge"},
              "there is no benchmark 'storge'; did you mean 'storage'?");
  check_wrong({"--storage", here, "-o", out, "--write-budget", "12"}, "--write-budget: '12'");
  check_wrong({"--storage", here, "-o", out, "--write-budget", "16 MiB", "--file-size", "1 GiB"},
              "is less than one file of 1 GiB");
  check_wrong(
      {"--storage", here, "-o", out, "--file-size", "1000 TiB", "--write-budget", "2000 TiB"},
      here);
  check_wrong({"--storage", here, "-o", out, "--threads", "4000"}, "this process may use");
  check_wrong({"--storage", here, "-o", out, "--gpu", "h100_sxm5_80g"},
              "did you mean 'h100_sxm5_80gb'?");
  check_wrong({"--storage", here, "-o", out, "--resume"}, "there are no samples of an earlier run");
  CHECK(calib({"--quick", "--full", "-o", out}).code == 2);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"drive", "file", "other"});
  CHECK(names_in(storage).empty());
}

TEST_CASE("a folder that cannot be written is refused by name", "[calib]") {
  if (geteuid() == 0) {
    WARN("SKIPPED: root writes anywhere");
    return;
  }
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const Finished run =
      calib(small_run(folder.path(), fs::temp_directory_path() / "x.yaml", {"--only", "storage"}));
  fs::permissions(folder.path(), fs::perms::owner_all);
  CHECK(run.code == 2);
  CHECK_THAT(run.err, Containing(folder.path().string()));
}

TEST_CASE("a dry run says what would be written, and writes nothing", "[calib]") {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "node.yaml";
  const Finished run = calib(small_run(folder.path(), out, {"--dry-run"}));
  CHECK(run.code == 0);
  CHECK_THAT(run.out,
             Containing("one file of 64 MiB without a name, at most 2 GiB written in all"));
  CHECK_THAT(run.out, Containing("of a drive-write"));
  // By the names of --only, each once.
  CHECK_THAT(run.out, Containing("\n  gemm ") && Containing("\n  gemm_16 "));
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a profile that calib writes is one that simulate reads, show prints and diff compares",
          "[calib]") {
  const TemporaryFolder folder, storage;
  const fs::path out = folder.path() / "node.yaml";
  const Finished run =
      calib(small_run(storage.path(), out, {"--only", "gemm,dram,host_copy,cast,adam,storage"}));
  INFO(run.err << run.out);
  REQUIRE(run.code == 0);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"node.samples.jsonl", "node.yaml"});
  CHECK(names_in(storage.path()).empty());
  CHECK_THAT(run.out, Containing("gate") && Containing("--ungated"));
  const std::string network =
      std::string(TIDEGATE_SOURCE_DIR) + "/tests/data/hf_configs/qwen2.5-3b.json";
  const Finished simulated = tidegate::test::run(
      {TIDEGATE_EXECUTABLE, "simulate", "--hf", network, "--seq", "512", "--hardware", out.string(),
       "--no-fixes", "--draws", "2", "--iterations", "1", "--json"});
  INFO(simulated.err);
  REQUIRE(simulated.code == 0);
  CHECK(json::parse(simulated.out)["iteration_s"].get<double>() > 0);
  CHECK(calib({"show", out.string()}).code == 0);
  const Finished diff = calib({"diff", out.string(), out.string(), "--json"});
  CHECK(diff.code == 0);
  CHECK(json::accept(diff.out));
}

TEST_CASE("calib measures a file system without direct access and says so", "[calib]") {
  if (!fs::is_directory("/dev/shm")) return;
  const TemporaryFolder folder;
  const fs::path storage = fs::path("/dev/shm") / ("tidegate-test-" + std::to_string(getpid()));
  fs::create_directory(storage);
  const Finished run =
      calib(small_run(storage, folder.path() / "node.yaml", {"--only", "storage"}));
  const std::vector<std::string> left = names_in(storage);
  fs::remove_all(storage);
  INFO(run.err << run.out);
  CHECK(run.code == 0);
  CHECK(left.empty());
  CHECK_THAT(text_of(folder.path() / "node.yaml"),
             Containing("tmpfs") && Containing("  memory:") && Containing("buffered"));
}

TEST_CASE("however calib is ended, no file is left and the profile of before stays", "[calib]") {
  // TIDEGATE_KILLS=50 for the long form.
  const char* const asked = std::getenv("TIDEGATE_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 6;
  const TemporaryFolder folder, storage;
  const fs::path out = folder.path() / "node.yaml";
  const std::string before = "kind: node  # of before\n";
  std::mt19937 random(11);
  for (int i = 0; i < kills; ++i) {
    folder.write("node.yaml", before);
    const int signal = i % 3 == 0 ? SIGINT : i % 3 == 1 ? SIGTERM : SIGKILL;
    const double seconds = 0.02 + static_cast<double>(random() % 1500) / 1000;
    run_and_kill(small_run(storage.path(), out, {"--only", "timer,host_copy,storage"}), signal,
                 seconds);
    INFO("signal " << signal << " after " << seconds << " s");
    CHECK(names_in(storage.path()).empty());
    // Either it had not come to writing, or what it wrote is whole.
    const std::string now = text_of(out);
    CHECK((now == before || now.find("\ncalibration:\n") != std::string::npos));
    for (const std::string& name : names_in(folder.path())) {
      const bool is_known = name == "node.yaml" || name == "node.samples.jsonl" ||
                            name == "node.incomplete.yaml" ||
                            name == "node.incomplete.samples.jsonl";
      INFO(name);
      CHECK(is_known);
      if (name == "node.incomplete.yaml")
        CHECK_THAT(text_of(folder.path() / name), Containing("complete: false"));
      fs::remove(folder.path() / name);
    }
  }
}

TEST_CASE("samples of another machine are not gone on with", "[calib][faults]") {
  const TemporaryFolder folder, storage;
  const fs::path out = folder.path() / "node.yaml";
  auto flags = small_run(storage.path(), out, {"--only", "timer"});
  REQUIRE(calib(flags).code == 0);
  const fs::path raw = folder.path() / "node.samples.jsonl";
  std::string text = text_of(raw);
  const std::size_t host = text.find("\"host\":\"");
  REQUIRE(host != std::string::npos);
  text.replace(host + 8, 4, "zzzz");
  std::ofstream(raw) << text;
  const std::string profile = text_of(out);
  flags.emplace_back("--resume");
  const Finished run = calib(flags);
  CHECK(run.code == 2);
  CHECK_THAT(run.err, Containing("node.samples.jsonl:1:1: host: the samples are of machine zzzz"));
  CHECK(text_of(raw) == text);
  CHECK(text_of(out) == profile);
}

TEST_CASE("what an interrupt left half done, --resume finishes", "[calib]") {
  const TemporaryFolder folder, storage;
  const fs::path out = folder.path() / "node.yaml";
  auto flags =
      small_run(storage.path(), out, {"--only", "cores,host_copy,cast,adam", "--passes", "3"});
  run_and_kill(flags, SIGINT, 3);
  REQUIRE(fs::exists(folder.path() / "node.incomplete.samples.jsonl"));
  CHECK_FALSE(fs::exists(out));
  flags.emplace_back("--resume");
  const Finished run = calib(flags);
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"node.samples.jsonl", "node.yaml"});
  CHECK_THAT(text_of(out), Containing("complete: true"));
}
