#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "calib/cuda/shim/nvml.hpp"
#include "models/base/units.hpp"

/// Numbers of timing, without a device.
namespace tidegate::cuda {

/// How a sample is cut: `rounds` times `operations` behind a gate.
struct Cut {
  int operations = 1;
  int rounds = 1;
};
/// About `target` in all when one operation takes `one`: at most `most` operations a round, at
/// least one of each, at most 1000 rounds.
Cut cut_for(Seconds target, Seconds one, int most);

/// Speed beside another work over speed alone, of four times taken in the order alone, beside,
/// beside, alone, so that a steady drift of the machine cancels: (a1 + a2) / (b1 + b2).
double abba(Seconds alone1, Seconds beside1, Seconds beside2, Seconds alone2);

/// What of the clock a row depends on.
enum class Needs { multiprocessors, link };

/// Why a reading taken during a sample spoils it; empty when it does not. For what runs on
/// multiprocessors: below 75 % of the default clock, the rule of NVIDIA's NVBench. For copies by
/// the engines, which have their own clock: only when the hardware slowed down (heat, power brake).
std::string slowed(const ClockReading& reading, double default_clock, Needs needs);

/// nccl-tests' bus bandwidth: bytes that each link carries for a collective of `bytes` (the whole
/// vector) over `ranks`, per second, whatever the algorithm: all-reduce 2 (n-1)/n · bytes / time,
/// all-gather and reduce-scatter (n-1)/n · bytes / time (nccl-tests, doc/PERFORMANCE.md).
double all_reduce_factor(int ranks);
double gather_factor(int ranks);

}  // namespace tidegate::cuda
