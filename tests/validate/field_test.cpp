#include "validate/field.hpp"

#include <algorithm>
#include <filesystem>

#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"
#include "validate/field_cases.hpp"

using namespace tidegate;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

const std::string shipped = std::string(TIDEGATE_SOURCE_DIR) + "/validate/published/field";

// One report, `inputs` and `runs` given; the scenario has 4e6 parameters in fp32 on one GPU.
std::string report(const std::string& inputs, const std::string& runs) {
  return "title: T\nsource: S\ninputs: " + inputs +
         "\nscenario:\n"
         "  workload:\n"
         "    layers:\n"
         "      - {name: a, forward: [{elementwise: {bytes: 1 kB}}], parameters: 4000000}\n"
         "    dtype: fp32\n"
         "  hardware: workstation_rtx4090\n"
         "  policy: {}\n"
         "runs:\n" +
         runs;
}

struct Files {
  TemporaryFolder folder;
  std::string index(const std::string& text) const { return folder.write("index.yaml", text); }
  Field field(const std::string& case_text) const {
    folder.write("a.yaml", case_text);
    return run_field({.index = index("cases:\n  - case: a\n"), .only = ""});
  }
  std::string error_of(const std::string& index_text, const std::string& case_text = "") const {
    if (!case_text.empty()) folder.write("a.yaml", case_text);
    try {
      run_field({.index = index(index_text), .only = ""});
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
};

}  // namespace

TEST_CASE("observed memory becomes rows beside predictions", "[field]") {
  // GPU: 4e6 · (4 + 4 + 8) B = 64 MB and 17.04 MB of cuBLAS workspaces, context 0.5 GiB beside it.
  // Host: 6 GiB of system, 2 GiB of process.
  const Field f = Files().field(report(
      "complete",
      "  - {run: r, observed: {gpu_allocated: 101.2992 MB, gpu_used: [600 MB, 700 MB], host_used: "
      "8 GiB, host_process: 2 GiB, verdict: fits}}\n"
      "  - {run: small, set: {machine.gpus.memory: 0.55 GiB}, observed: {verdict: gpu}}\n"
      "  - {run: guess, estimate: true, observed: {all_states: 64 MB}}\n"));
  REQUIRE(f.rows.size() == 5);
  CHECK(f.rows[0].predicted == 64e6 + 2 * 8.125 * 1024 * 1024);
  CHECK(f.rows[0].relative_error() == Approx(-0.2));
  CHECK(f.rows[0].is_missed());
  // 64 MB + 536.9 MB = 600.9 MB, within the range.
  CHECK(f.rows[1].quantity == "gpu_used");
  CHECK(f.rows[1].relative_error() == 0);
  CHECK_FALSE(f.rows[1].is_missed());
  CHECK(f.rows[2].relative_error() == 0);
  CHECK(f.rows[3].predicted == 2.0 * (1 << 30));
  // An estimate of somebody is never gated.
  CHECK(f.rows[4].predicted == 64e6);
  CHECK_FALSE(f.rows[4].gate.has_value());
  // 0.05 GiB = 53.7 MB beside the context do not hold 64 MB.
  REQUIRE(f.verdicts.size() == 2);
  CHECK(f.verdicts[0].agrees());
  CHECK(f.verdicts[1].predicted == "gpu");
  CHECK(f.verdicts[1].agrees());
  CHECK(f.gated == 6);
  CHECK(f.missed == 1);
}

TEST_CASE("a row is measured against the nearer end of its range", "[field]") {
  const auto error = [](double predicted) {
    return FieldRow{.predicted = predicted, .observed = {10, 20}}.relative_error();
  };
  CHECK(error(9) == Approx(-0.1));
  CHECK(error(15) == 0);
  CHECK(error(22) == Approx(0.1));
}

TEST_CASE("an answer agrees when the full memory is among those predicted", "[field]") {
  const auto agrees = [](const char* predicted, const char* observed) {
    return FieldVerdict{.predicted = predicted, .observed = observed}.agrees();
  };
  CHECK(agrees("fits", "fits"));
  CHECK(agrees("gpu and host", "host"));
  CHECK_FALSE(agrees("gpu", "host"));
  CHECK_FALSE(agrees("fits", "gpu"));
  CHECK_FALSE(agrees("host", "fits"));
}

TEST_CASE("assumed inputs are shown and not gated", "[field]") {
  const Field f = Files().field(
      report("partial", "  - {run: r, observed: {gpu_allocated: 10 MB, verdict: gpu}}\n"));
  CHECK(f.gated == 0);
  CHECK(f.missed == 0);
  CHECK_THAT(to_text(f), Containing("assumed inputs") && Containing("differs"));
}

TEST_CASE("what is saved is counted from the first run", "[field]") {
  // Without master weights in fp16: 2 + 2 + 4 = 8 B against 16 B, of 4e6 parameters.
  const Field f = Files().field(
      report("complete",
             "  - {run: first, reference: true}\n"
             "  - {run: half, set: {workload.dtype: fp16, policy.optimizer: '{name: resident, "
             "master_weights: false}'}, observed: {gpu_saved: 32 MB}}\n"));
  REQUIRE(f.rows.size() == 1);
  CHECK(f.rows[0].predicted == 32e6);
}

TEST_CASE("wrong field files are located errors that say what would be right", "[field]") {
  const Files files;
  const std::string one = "cases:\n  - case: a\n";
  CHECK_THAT(files.error_of("cases:\n  - case: b\n"),
             Containing("index.yaml:2:5: ") && Containing("has no file"));
  CHECK_THAT(files.error_of(one + "  - case: a\n",
                            report("complete", "  - {run: r, observed: {verdict: fits}}\n")),
             Containing("is listed once"));
  CHECK_THAT(files.error_of(one, report("complete", "  - {run: r, observed: {gpu_usd: 1 GB}}\n")),
             Containing("a.yaml:12:25: ") && Containing("did you mean 'gpu_used'?"));
  CHECK_THAT(files.error_of(one, report("complete", "  - {run: r, observed: {}}\n")),
             Containing("says nothing"));
  CHECK_THAT(
      files.error_of(one, report("complete", "  - {run: r, observed: {gpu_used: [2 GB, 1 GB]}}\n")),
      Containing("the least comes first"));
  CHECK_THAT(files.error_of(one, report("complete", "  - {run: r, not_simulated: because}\n")),
             Containing("simulates nothing"));
  CHECK_THAT(
      files.error_of(
          one,
          report("complete",
                 "  - {run: r, set: {policy.optimiser: resident}, observed: {verdict: fits}}\n")),
      Containing("did you mean 'optimizer'?") && Containing("asked for by this run, r of a"));
  CHECK_THAT(files.error_of(
                 "cases:\n  - {case: c, title: T, source: S, published: P, not_simulated: N}\n"),
             Containing("predicted elsewhere"));
  CHECK_THROWS_WITH(run_field({.index = "", .only = "no such"}), Containing("there are: nvme_"));
}

TEST_CASE("every report that ships is listed once, with its source and why it is not simulated",
          "[field]") {
  const std::vector<FieldReport> reports = read_field(shipped + "/index.yaml");
  std::vector<std::string> files = {"index"};
  for (const FieldReport& r : reports) {
    INFO(r.facts.name);
    CHECK_FALSE(r.facts.title.empty());
    CHECK_FALSE(r.facts.source.empty());
    const int ways = (r.runs.empty() ? 0 : 1) + (r.facts.elsewhere.empty() ? 0 : 1) +
                     (r.runs.empty() && !r.facts.not_simulated.empty() ? 1 : 0);
    CHECK(ways == 1);
    if (!r.runs.empty()) files.push_back(r.facts.name);
  }
  // A file that the index forgets would be dropped silently.
  for (const auto& entry : fs::directory_iterator(shipped)) {
    INFO(entry.path().string());
    CHECK(std::ranges::find(files, entry.path().stem().string()) != files.end());
  }
}
