#pragma once

#include <memory>

#include "calib/measure/bench.hpp"

namespace tidegate {

/// What the executor's threads do with the CPU, measured as they do it: one thread, the executor's
/// own functions (validate/engine/kernels.hpp) and pages.
///
///   rig.gemm       FLOP/s of a product of a transformer's layer     m, n, k
///   rig.attention  FLOP/s of the products of an attention           queries, heads, head_dim
///   rig.stream     B/s, read and written, of an element-wise kernel  bytes
///   rig.copy       B/s of a copy from buffer to buffer               bytes
///   rig.adam       parameters per second                             parameters
///   rig.cast       elements per second, bf16 to fp32                 elements
///   rig.memory     B/s, read and written, of a streaming copy by all cores   threads
std::unique_ptr<calib::Bench> make_engine_bench(const calib::Setup& setup);

}  // namespace tidegate
