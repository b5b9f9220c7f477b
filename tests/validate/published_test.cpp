#include "validate/published.hpp"

#include <fstream>
#include <sstream>

#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;
using test::TemporaryFolder;

namespace {

const std::string scenario =
    "workload: {network: {layers: 2, hidden: 512, heads: 8, vocabulary: 1000}, sequence: 128}\n"
    "hardware: workstation_rtx4090\npolicy: {}\n";

// One case of one run; `run` is what stands in the run besides its name.
std::string cases(const std::string& run, const std::string& of_case = "") {
  return "title: T\nsource: S\ncases:\n  - case: A\n" + of_case +
         "    variants:\n      - variant: base\n" + run;
}
const std::string good_run = "        scenario: s.yaml\n        measured: {iteration: 1 s}\n";

struct Files {
  TemporaryFolder folder;
  std::string scenario_file = folder.write("s.yaml", scenario);
  std::string error_of(const std::string& text) const {
    try {
      run_published({.file = folder.write("cases.yaml", text), .only = ""});
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
};

}  // namespace

TEST_CASE("a file of cases becomes rows", "[published]") {
  const Files files;
  const std::string second =
      "      - variant: fast\n        scenario: s.yaml\n        set: {policy.activations: "
      "recompute}\n"
      "        calibrates: [iteration]\n        measured: {iteration: 2 s, speedup: 0.5, gpu_peak: "
      "1 GiB}\n";
  const Published p =
      run_published({.file = files.folder.write("c.yaml", cases(good_run) + second)});
  REQUIRE(p.rows.size() == 4);
  CHECK(p.profile == "workstation_rtx4090");
  CHECK(p.rows[0].quantity == "iteration");
  CHECK(p.rows[0].measured == 1);
  CHECK_FALSE(p.rows[0].in_sample);
  CHECK(p.rows[1].in_sample);
  // Recomputation takes longer: the speed-up over the first run is below one.
  CHECK(p.rows[3].quantity == "speedup");
  CHECK(p.rows[3].predicted == Approx(p.rows[0].predicted / p.rows[1].predicted));
  CHECK(p.rows[3].predicted < 1);
}

TEST_CASE("a wrong file of cases is a located error that says what would be right", "[published]") {
  const Files files;
  const auto said = [&](const std::string& text) { return files.error_of(text); };
  const std::string measured = "        measured: {iteration: 1 s}\n";
  CHECK_THAT(
      said(cases(good_run + "        nots: x\n")),
      Containing("cases.yaml:9:9: cases[0].variants[0].nots: unknown key; did you mean 'note'?"));
  CHECK_THAT(said(cases("        scenario: s.yaml\n        measured: {iteratoin: 1 s}\n")),
             Containing("did you mean 'iteration'?"));
  CHECK_THAT(said(cases("        scenario: s.yaml\n        measured: {iteration: 1}\n")),
             Containing("cases.yaml:8:31: ") && Containing("has no unit"));
  CHECK_THAT(said(cases("        scenario: s.yaml\n        measured: {speedup: 0}\n")),
             Containing("relative to what was measured"));
  CHECK_THAT(said(cases("        scenario: s.yaml\n        measured: {}\n")),
             Containing("says nothing"));
  CHECK_THAT(said(cases("        scenario: none.yaml\n" + measured)),
             Containing("cases.yaml:7:19: ") && Containing("there is no file"));
  CHECK_THAT(said(cases("        scenario: s.yaml\n        calibrates: [updat]\n" + measured)),
             Containing("did you mean 'update'?"));
  CHECK_THAT(said(cases(good_run + "      - variant: base\n" + good_run)),
             Containing("second 'base'"));
  CHECK_THAT(said("title: T\nsource: S\ncases: []\n"),
             Containing("cases.yaml:3:8: cases: is empty"));
  CHECK_THAT(said("title: T\ncases: 3\n"),
             Containing("source: is missing") && Containing("a list is expected"));
  CHECK_THAT(said("cases: [\n"), Containing("is not YAML"));
}

TEST_CASE("a fault of a run's scenario names the run that asked for it", "[published]") {
  const Files files;
  const std::string said =
      files.error_of(cases("        set: {policy.optimiser: resident}\n" + good_run));
  CHECK_THAT(said, Containing("did you mean 'optimizer'?") &&
                       Containing("cases.yaml:6:9: asked for by this run, base of case A"));
}

TEST_CASE("a parameter count that the shapes do not give is refused", "[published]") {
  const Files files;
  CHECK_THAT(files.error_of(cases(good_run, "    parameters: 7\n")),
             Containing("cases.yaml:5:17: parameters: is 7, but the shapes of case A give"));
}

TEST_CASE("a case that is not there lists those that are", "[published]") {
  CHECK_THROWS_WITH(run_published({.file = "", .only = "71B"}),
                    Containing("there are: 40B, 52B, 70B"));
}
