#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "calib/measure/bench.hpp"
#include "models/base/units.hpp"
#include "models/work.hpp"

/// What physics sets to CPU and memory rows. A value above it is a fault of the measurement: code
/// that the compiler removed, a cache taken for memory, a wrong count.
namespace tidegate::calib {

struct Ceiling {
  double value = 0;  ///< in the row's unit; 0: unknown
  std::string from;
};

/// Highest clock in Hz: what the kernel's cpufreq says, else a bound.
///
/// 6.2 GHz is the highest boost of any x86 processor sold (Core i9-14900KS, Intel's product page).
struct Clock {
  double hertz = 6.2e9;
  std::string from = "6.2 GHz, as no x86 clock is known to be higher";
};
Clock highest_clock();

/// Threads × two units × vector width × multiply and add × clock.
Ceiling flops_ceiling(const Clock& clock, int threads);

/// The same for products of matrices. Of 16 bits: threads × 1024 × clock, what a core's tiles do
/// (AMX, 16 x 16 x 32 multiply-adds in 16 cycles: Intel 64 and IA-32 Architectures Optimization
/// Reference Manual, chapter on AMX); no x86 core is known to do more.
Ceiling product_ceiling(const Clock& clock, int threads, DType type);

/// Of `bytes` per unit of the row's value. Any footprint is bound by three loads and two stores of
/// a vector per cycle and thread. One of four last-level caches or more comes from memory: it is
/// bound by the lines that a core can wait for (Little's law), assumed to be at most 96 in 60 ns,
/// 102 GB/s per thread, and by the DIMMs where the firmware tells them.
Ceiling memory_ceiling(const Setup& setup, const Clock& clock, int threads, Bytes footprint,
                       double bytes);

/// Sum over the populated memory devices of an SMBIOS table, each as if it were a channel: data
/// width × transfers per second. 0 when the table names none. Source: DMTF DSP0134 3.7, type 17.
BytesPerSecond dimm_bandwidth(std::span<const std::byte> table);

}  // namespace tidegate::calib
