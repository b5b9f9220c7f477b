#include "models/calibration.hpp"

#include <cmath>
#include <string>

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

constexpr const char* whole = R"(tool: tidegate 0.1.0 (abc)
created: 2026-11-30T08:00:00Z
command: "tidegate calib run --out node.yaml"
complete: true
seconds: 210
seed: 7
passes: 3
host: {id: 3f2a, cpu: EPYC, kernel: 6.18, cores: 2, numa_nodes: 1, memory: 23.4 GiB, hypervisor: kvm}
gate: {accepted: 812, rejected: 31, foreign_cores: 0.05, foreign_io: 15 MB/s}
raw: {file: node.samples.jsonl, fnv1a: abcd, blocks: 243}
error_floor: {compute_bound: 4.1 %, io_bound: 7.9 %, overlapped: 8.8 %}
canaries: {fma: {samples: 12, spread: 2.1 %, drift: 0.3 %}}
checks: {page_cache: {verdict: suspected, evidence: "resident: 4 %"}}
fits:
  nvme.read:
    form: half_size
    parameters: {rate: [7.1e9, 6.9e9, 7.3e9], half: [1e5, ~, ~]}
    residual: 3.1 %
    held_out_setting: inf %
    used: true
    domain: [[131072, 16777216]]
tables:
  nvme.write: {coordinates: [block, depth], unit: B/s, rows: [[1048576, 16, 7e9, 6.9e9, ~, 1]]}
not_measured: {gpu: "no CUDA device"}
nodes: {count: 4, slow: {n3: "dram.triad 20 % below the median"}, spread: {dram.triad: [80, 100, 101]}}
)";

Calibration read(const std::string& text) {
  yaml::Document document(yaml::load_text(text, "node.yaml"));
  Calibration calibration = read_calibration(document.root());
  document.finish();
  return calibration;
}

}  // namespace

TEST_CASE("a section calibration is read with all that it says", "[calibration]") {
  const Calibration c = read(whole);
  CHECK(c.tool == "tidegate 0.1.0 (abc)");
  CHECK(c.host.size() == 7);
  REQUIRE(c.gate.has_value());
  CHECK(c.raw->fnv1a == "abcd");
  CHECK(read("{tool: t, created: now, raw: {file: f, fnv1a: affe}}").raw->fnv1a == "affe");
  CHECK(c.gate->foreign_io.value() == 15e6);
  CHECK(c.error_floor->io_bound == Approx(0.079));
  CHECK(c.canaries.at(0).drift == Approx(0.003));
  CHECK(c.checks.at(0).verdict == Calibration::Verdict::suspected);
  CHECK(c.not_measured.at(0).second == "no CUDA device");
  CHECK(c.slow_nodes.at(0).first == "n3");
  CHECK(c.spreads.at(0).least == 80);
}

TEST_CASE("what could not be told is infinite", "[calibration]") {
  const Calibration c = read(whole);
  const Calibration::Fit& fit = c.fits.at(0);
  CHECK(fit.parameters.at(0).high == 7.3e9);
  CHECK(fit.parameters.at(1).low == 0);
  CHECK(std::isinf(fit.parameters.at(1).high));
  CHECK(std::isinf(fit.held_out_setting));
  CHECK(std::isinf(fit.measurement));  // left out
  CHECK(fit.domain.at(0).second == 16777216);
  CHECK(std::isinf(c.tables.at(0).rows.at(0).at(4)));
}

TEST_CASE("only tool and created are required of a calibration", "[calibration]") {
  CHECK(read("{tool: t, created: now}").fits.empty());
  CHECK(read("tool: t\ncreated: now\nnodes:\n  count: 2\n  slow: {}\n  spread:\n").nodes == 2);
  CHECK_THROWS_WITH(read("{tool: t}"), Containing("created: is missing"));
}

TEST_CASE("faults of a calibration are located", "[calibration]") {
  const auto fault = [](const std::string& more) {
    return read("tool: t\ncreated: now\n" + more + "\n");
  };
  CHECK_THROWS_WITH(fault("tables_: 1"), Containing("node.yaml:3:1") && Containing("'tables'"));
  CHECK_THROWS_WITH(fault("checks: {a: {verdict: fine}}"),
                    Containing("node.yaml:3:23") && Containing("ok, suspected, not_told"));
  CHECK_THROWS_WITH(fault("error_floor: {compute_bound: 4, io_bound: 1 %, overlapped: 1 %}"),
                    Containing("such as 5 %"));
  CHECK_THROWS_WITH(fault("tables: {q: {coordinates: [n], unit: B/s, rows: [[1, 2]]}}"),
                    Containing("has 2 numbers; 5 are expected"));
  CHECK_THROWS_WITH(fault("fits: {q: {form: constant, parameters: {c: 1}}}"),
                    Containing("a list is expected"));
  CHECK_THROWS_WITH(fault("fits: {q: {form: constant, parameters: {c: [1, 2]}}}"),
                    Containing("write [value, low, high]"));
  CHECK_THROWS_WITH(fault("gate: {accepted: 1, accpted: 2}"),
                    Containing("did you mean 'accepted'?"));
}
