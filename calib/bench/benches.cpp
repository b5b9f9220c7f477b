#include <array>

#include "calib/bench/cpu_benches.hpp"
#include "calib/measure/bench.hpp"
#include "calib/storage/storage_bench.hpp"

namespace tidegate::calib {
namespace {

std::string always(const Setup&) { return ""; }

// One line per bench.
// clang-format off
constexpr std::array table = {
    BenchEntry{"timer", "cost and resolution of the clock", always, make_timer},
    BenchEntry{"noise", "equal pieces of work: what interrupts them", always, make_noise},
    BenchEntry{"cores", "multiply-adds in registers over threads", always, make_cores},
    BenchEntry{"gemm", "matrix products in fp32 by the BLAS", always, make_gemm},
    BenchEntry{"gemm_16", "matrix products of 16 bits with sums in fp32 by oneDNN", why_no_half_gemm, make_half_gemm},
    BenchEntry{"attention", "causal attention, scores in memory and in a cache", always, make_attention},
    BenchEntry{"dram", "memory read, written and copied over threads", always, make_dram},
    BenchEntry{"latency", "a chain of dependent loads while other threads read", always, make_loaded_latency},
    BenchEntry{"numa", "memory of each node read from each node", why_not_numa, make_numa},
    BenchEntry{"host_copy", "memcpy between buffers over sizes", always, make_host_copy},
    BenchEntry{"cast", "conversion between fp32 and 16 bits", always, make_cast},
    BenchEntry{"adam", "AdamW steps over sizes, threads and gradient types", always, make_adam},
    BenchEntry{"norm", "squared norm of gradients", always, make_norm},
    BenchEntry{"first_touch", "new memory: pages faulted in", always, make_first_touch},
    BenchEntry{"pin", "pages locked and unlocked", why_not_pin, make_pin},
    BenchEntry{"storage", "files of each path: reads, writes, mixes, latencies, flushes", why_no_storage, make_storage},
    BenchEntry{"beside", "AdamW steps and reads of each path at the same time", why_no_storage, make_beside},
    BenchEntry{"sustained", "one long write to each path, only when asked for", why_no_sustained, make_sustained},
};
// clang-format on

}  // namespace

std::span<const BenchEntry> bench_table() { return table; }

}  // namespace tidegate::calib
