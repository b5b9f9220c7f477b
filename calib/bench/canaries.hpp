#pragma once

#include <memory>
#include <vector>

#include "calib/measure/bench.hpp"

/// Probes of a tenth of a second or two, taken before, between and after the rows: multiply-adds in
/// registers on all threads, a copy of 64 MiB. What they show is the drift of the machine.
namespace tidegate::calib {

/// One row each: "canary.fma", "canary.copy".
std::vector<std::unique_ptr<Bench>> cpu_canaries(const Setup& setup);

}  // namespace tidegate::calib
