#include "calib/profile/calibration_page.hpp"

#include <string>

#include "calib/measure/protocol.hpp"
#include "models/base/error.hpp"
#include "tests/calib/profile/files.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// half_size with rate 8 and half 1: r(1) = 4, r(3) = 6, r(7) = 7; three blocks at each.
Measurements samples() {
  Measurements m;
  m.passes = 3;
  m.is_complete = true;
  for (const auto& [bytes, value] : {std::pair{1., 4.}, {3., 6.}, {7., 7.7}}) {
    RowResult row{{.quantity = "host_copy", .at = {{"bytes", bytes}}}, {}, {}};
    for (std::int32_t pass = 0; pass < 3; ++pass) {
      const double v = value * (1 + 0.01 * (pass - 1));
      row.blocks.push_back({.pass = pass,
                            .is_converged = true,
                            .samples = {{.value = v, .spoiled = {}, .series = {}}}});
    }
    m.rows.push_back(row);
  }
  m.canaries = {{"canary.fma", {0, 20, 40}, {100, 101, 99}}};
  return m;
}

std::string profile_of(const std::string& hash) {
  return R"(kind: node
name: measured <node>
host:
  copy_rate: {value: 7.5 GB/s, source: "measured: host_copy; 3 blocks", uncertainty: 2.5 %}
calibration:
  tool: tidegate 0.1.0
  created: 2026-11-30T08:00:00Z
  passes: 3
  gate: {accepted: 812, rejected: 31, foreign_cores: 0.05, foreign_io: 15 MB/s}
  raw: {file: m.samples.jsonl, fnv1a: )" +
         hash + R"(, blocks: 9}
  error_floor: {compute_bound: 4.1 %, io_bound: 7.9 %, overlapped: 8.8 %}
  noise: {compute: {spread: 3 %, freedom: 4}}
  canaries: {canary.fma: {samples: 3, spread: 1 %, drift: 1 %}}
  checks: {page_cache: {verdict: suspected, evidence: "4 % resident"}}
  fits:
    host_copy:
      form: half_size
      parameters: {rate: [8, 7.6, 8.4], half: [1, ~, ~]}
      used: true
      domain: [[1, 7]]
  tables:
    host_copy: {coordinates: [bytes], unit: B/s, rows: [[1, 4, 3.9, 4.1, 3], [3, 6, 5.9, 6.1, 3], [7, 7.7, 7, 8, 3]]}
  not_measured: {gpu: "no CUDA device"}
)";
}

}  // namespace

TEST_CASE("the page of a profile draws every block beside the curve and what the form misses",
          "[page]") {
  const Files files;
  const std::string lines = to_lines(samples());
  files.write("m.samples.jsonl", lines);
  const std::string html = show_html(files.write("m.yaml", profile_of(fingerprint(lines))));
  // Two pictures of the fit, one of canaries. 9 blocks in two of them, 3 samples of the canary.
  CHECK(count(html, "<svg") == 3);
  CHECK(count(html, "<circle") == 2 * 9 + 3);
  CHECK(count(html, "stroke-width=\"1.6\"") == 2);  // the fitted curve, and the canary's line
  CHECK_THAT(html, Containing("Points are the 9 blocks of m.samples.jsonl."));
  // 7.7 B/s of pass 2 against a model of 7.
  CHECK_THAT(html, Containing("bytes 7 B, pass 2: 7.7e-09 GB/s, model 7e-09"));
  CHECK_THAT(html, Containing("measured &lt;node&gt;") && !Containing("<node>"));
  for (const char* words : {"4 % resident", "1 suspected", "no CUDA device", "31 more rejected",
                            "assumed", "degrees of freedom", "95 % from"}) {
    INFO(words);
    const bool is_there = html.find(words) != std::string::npos;
    CHECK(is_there == (std::string(words) != "assumed"));
  }
}

TEST_CASE("without its samples a page shows the medians of the tables, and says so", "[page]") {
  const Files files;
  const std::string html = show_html(files.write("m.yaml", profile_of("0123456789abcdef")));
  CHECK(count(html, "<circle") == 2 * 3);
  CHECK_THAT(html, Containing("are not beside the profile"));
  files.write("m.samples.jsonl", to_lines(samples()));  // another run's
  const std::string other = show_html(files.write("m.yaml", profile_of("0123456789abcdef")));
  CHECK(count(other, "<circle") == 2 * 3);
  CHECK_THAT(other, Containing("are not those of the profile"));
}

TEST_CASE("a page is made of measured profiles only", "[page]") {
  CHECK_THROWS_WITH(show_html(TIDEGATE_SOURCE_DIR "/hw_profiles/h200_8gpu.yaml"),
                    Containing("has no section calibration"));
}
