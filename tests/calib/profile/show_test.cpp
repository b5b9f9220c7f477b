#include "calib/profile/show.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "models/base/error.hpp"
#include "tests/calib/profile/files.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

// half_size with rate 8 and half 1: r(1) = 4, r(3) = 6, r(7) = 7.
constexpr const char* measured = R"(kind: node
name: measured node
description: two cores
host:
  copy_rate: {value: 7.5 GB/s, source: "measured: host_copy; 3 blocks", uncertainty: 2.5 %}
  base_use: {value: 1 GiB, assumed: "a guess"}
calibration:
  tool: tidegate 0.1.0
  created: 2026-11-30T08:00:00Z
  complete: false
  passes: 3
  gate: {accepted: 812, rejected: 31, foreign_cores: 0.05, foreign_io: 15 MB/s}
  error_floor: {compute_bound: 4.1 %, io_bound: 7.9 %, overlapped: 8.8 %}
  canaries: {fma: {samples: 12, spread: 2.1 %, drift: 0.3 %}}
  checks: {page_cache: {verdict: suspected, evidence: "4 % resident"}}
  fits:
    host_copy:
      form: half_size
      parameters: {rate: [8, 7.6, 8.4], half: [1, ~, ~]}
      residual: 3.1 %
      held_out_setting: inf %
      used: true
      domain: [[1, 7]]
  tables:
    host_copy: {coordinates: [threads, bytes], unit: B/s, rows: [[1, 1, 4, 3.9, 4.1, 3], [1, 3, 6, 5.9, 6.1, 3], [1, 7, 7.7, 7, 8, 3]]}
  not_measured: {gpu: "no CUDA device"}
)";

}  // namespace

TEST_CASE("a measured profile is shown with all that it says of itself", "[show]") {
  const Files files;
  const std::string text = show_text(files.write("m.yaml", measured), Glyphs::utf8);
  CHECK_THAT(text, Containing("INTERRUPTED"));
  CHECK_THAT(text, Containing("812 samples count, 31 rejected"));
  CHECK_THAT(text, Containing("4.1 % where compute is the bound, 7.9 % where storage is"));
  CHECK_THAT(text, Containing("7.5 GB/s ±2.5 %"));
  CHECK_THAT(text, Containing("assumed: a guess"));
  CHECK_THAT(text, Containing("suspected  4 % resident"));
  CHECK_THAT(text, Containing("7.6 to 8.4"));
  CHECK_THAT(text, Containing("not told at settings left out"));
  CHECK_THAT(text, Containing("12 samples, spread 2.1 %, drift 0.3 %"));
  CHECK_THAT(text, Containing("no CUDA device"));
}

TEST_CASE("residuals of a fit are drawn beside its table", "[show]") {
  const Files files;
  // log of 4/4, 6/6 and 7/7.7 = -0.0953: the middle, the middle, the bottom of ±9.5 %.
  const std::string path = files.write("m.yaml", measured);
  CHECK_THAT(show_text(path, Glyphs::utf8),
             Containing("▅▅▁  log(model/measured) of 3 settings, within 9.5 %"));
  const std::string ascii = show_text(path, Glyphs::ascii);
  CHECK_THAT(ascii, Containing("==_  log(model/measured)"));
  CHECK(std::ranges::all_of(ascii, [](char c) { return static_cast<unsigned char>(c) < 128; }));
}

TEST_CASE("memory of NUMA nodes is shown by pairs of nodes", "[show]") {
  const Files files;
  std::string text = measured;
  const std::string tables = "  tables:\n";
  // Node 1 was not read from node 4, which has memory alone; a pair may be missing.
  text.insert(text.find(tables) + tables.size(),
              "    numa.read: {coordinates: [from, to], unit: B/s, rows: [[0, 0, 100, 99, 101, 3], "
              "[0, 1, 50, 49, 51, 3], [1, 0, 51, 50, 52, 3], [1, 1, 99, 98, 100, 3], "
              "[0, 4, 20, 19, 21, 3]]}\n");
  const std::string shown = show_text(files.write("m.yaml", text), Glyphs::ascii);
  CHECK_THAT(shown, Containing("numa.read, B/s: from CPUs of a node (down)") &&
                        Containing("     0        100         50         20\n") &&
                        Containing("     1         51         99          ?\n"));
}

TEST_CASE("a profile that was not measured shows its values", "[show]") {
  const std::string text =
      show_text(TIDEGATE_SOURCE_DIR "/hw_profiles/h200_8gpu.yaml", Glyphs::ascii);
  CHECK_THAT(text, Containing("not measured by tidegate calib"));
  CHECK_THAT(text, Containing("gpus.memory"));
}

TEST_CASE("faults of a calibration are located when it is shown", "[show]") {
  const Files files;
  const std::string path = files.write("m.yaml", std::string(measured) + "  sed: 7\n");
  CHECK_THROWS_WITH(show_text(path, Glyphs::ascii), Containing("did you mean 'seed'?"));
}

TEST_CASE("a sparkline keeps the extremes and the order", "[show]") {
  const std::vector<double> rising{0, 1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(sparkline(rising, 0, 8, Glyphs::ascii) == "_.,-=+*##");
  CHECK(sparkline(rising, 0, 8, Glyphs::ascii, 3) == "_-#");
  CHECK(sparkline(std::vector<double>{5, 5}, 5, 5, Glyphs::utf8) == "▅▅");
  CHECK(sparkline(std::vector<double>{std::numeric_limits<double>::quiet_NaN()}, 0, 1,
                  Glyphs::ascii) == "?");
  CHECK(sparkline({}, 0, 1, Glyphs::ascii).empty());
}
