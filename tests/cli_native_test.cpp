// `tidegate validate suite --native` as people meet it on a machine that is not quiet.
#include <csignal>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"
#include "tests/validate/native/native_profile.hpp"

using tidegate::test::Finished;
using tidegate::test::TemporaryFolder;

namespace {

// Two processes that do nothing but compute, for as long as this lives.
class Neighbours {
 public:
  Neighbours() {
    for (pid_t& id : ids_) {
      id = fork();
      if (id != 0) continue;
      for (volatile unsigned n = 0;;) n = n + 1;
    }
  }
  ~Neighbours() {
    for (const pid_t id : ids_) {
      if (id <= 0) continue;
      kill(id, SIGKILL);
      waitpid(id, nullptr, 0);
    }
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

 private:
  pid_t ids_[2] = {};
};

Finished native(const TemporaryFolder& folder, std::vector<std::string> more) {
  const std::string rig = std::string(TIDEGATE_SOURCE_DIR) + "/validate/suite/native_rig.yaml";
  const std::string cases = folder.write("cases.yaml", R"(
scenario:
  workload:
    network: {layers: 2, hidden: 512, heads: 4, ffn: 2048, vocabulary: 512}
    sequence: 256
  hardware: )" + rig + R"(
  iterations: 3
  policy: {}
cases: [{name: compute}]
)");
  std::vector<std::string> words = {
      TIDEGATE_EXECUTABLE,    "validate", "suite", "--native", "--file", cases, "--storage",
      folder.path().string(), "--tries",  "1"};
  words.insert(words.end(), more.begin(), more.end());
  return tidegate::test::run(words);
}

}  // namespace

TEST_CASE("beside other work a native suite concludes nothing and says so", "[cli][native]") {
  const TemporaryFolder folder;
  const std::string profile = folder.write("this.yaml", tidegate::test::native_profile());
  const std::string page = (folder.path() / "native.html").string();
  const Neighbours neighbours;
  const Finished run = native(folder, {"--hardware", profile, "--json", "--html", page});
  INFO(run.err);
  CHECK(run.code == 5);
  const auto json = nlohmann::json::parse(run.out);
  CHECK(json.at("verdict") == "inconclusive");
  CHECK(json.at("conclusive") == 0);
  CHECK(json.at("score").at("median_error").is_null());
  CHECK(json.at("cases").at(0).at("measured_s").is_null());
  for (const auto& one : json.at("cases").at(0).at("runs")) {
    CHECK_THAT(one.at("spoiled").get<std::string>(), Containing("cores busy with other work"));
  }
  CHECK(std::filesystem::is_regular_file(page));
}

TEST_CASE("what a native suite cannot use is refused", "[cli][native][input]") {
  const TemporaryFolder folder;
  const std::string other =
      folder.write("other.yaml", tidegate::test::native_profile("0123456789ab"));
  const Finished elsewhere = native(folder, {"--hardware", other});
  CHECK(elsewhere.code == 2);
  CHECK_THAT(elsewhere.err, Containing("was measured on host 0123456789ab"));
  const Finished paced = tidegate::test::run({TIDEGATE_EXECUTABLE, "validate", "suite", "--storage",
                                              folder.path().string(), "--hardware", other});
  CHECK(paced.code == 2);
  CHECK_THAT(paced.err, Containing("--hardware is for --native"));
}
