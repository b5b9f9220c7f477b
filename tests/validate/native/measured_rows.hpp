#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calib/measure/protocol.hpp"

/// Rows as a pass of rates measures them, with round numbers.
namespace tidegate::test {

/// A row as measured, by three passes.
inline calib::RowResult measured(const std::string& quantity,
                                 std::vector<std::pair<std::string, double>> at, double value,
                                 double around = 0, calib::Gate gate = calib::Gate::cpu) {
  calib::RowResult r{{.quantity = quantity, .at = std::move(at), .gate = gate}, {}, {}};
  for (std::int32_t pass = 0; pass < 3; ++pass) {
    const double v = value * (1 + around * (pass - 1));
    r.blocks.push_back({.pass = pass,
                        .is_converged = true,
                        .samples = {{.value = v, .spoiled = {}, .series = {}}}});
  }
  return r;
}

/// All that the native cases need, of one drive.
inline calib::Measurements all_rows() {
  calib::Measurements m;
  m.rows = {measured("rig.gemm", {{"m", 256}, {"n", 256}, {"k", 256}}, 50e9),
            measured("rig.gemm", {{"m", 512}, {"n", 4096}, {"k", 1024}}, 90e9),
            measured("rig.gemm", {{"m", 1024}, {"n", 4096}, {"k", 512}}, 110e9),
            measured("rig.attention", {{"queries", 512}}, 40e9),
            measured("rig.stream", {{"bytes", 1e6}}, 10e9),
            measured("rig.memory", {{"threads", 2}}, 30e9),
            measured("rig.copy", {{"bytes", 1e6}}, 6e9),
            measured("rig.adam", {{"parameters", 1e6}}, 6e8, 0.1),
            measured("rig.cast", {{"elements", 1e6}}, 1.5e9),
            measured("drive.read", {{"block", 1048576}, {"depth", 16}}, 2e9, 0, calib::Gate::io),
            measured("drive.write", {{"block", 1048576}, {"depth", 16}}, 1e9, 0, calib::Gate::io),
            measured("drive.mixed_read", {{"write_cap", 1}}, 1e9, 0, calib::Gate::io),
            measured("drive.mixed_write", {{"write_cap", 1}}, 0.3e9, 0, calib::Gate::io),
            measured("drive.latency_read", {{"block", 4096}}, 1e-4, 0, calib::Gate::io)};
  return m;
}

}  // namespace tidegate::test
