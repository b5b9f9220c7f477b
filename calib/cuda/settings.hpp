#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "calib/measure/bench.hpp"
#include "models/work.hpp"

/// At which settings the GPU benchmarks measure, by effort. Plain lists, without a device.
namespace tidegate::cuda {

/// Matrix products of training, m tokens: y[m,n] = x[m,k] w[n,k]ᵀ with (n,k) = (3h,h) of queries,
/// keys and values, (h,h) of the output, (4h,h) and (h,4h) of a plain feed-forward, (ffn,h) and
/// (h,ffn) of a gated one, (vocab,h) of the head. Sizes of Llama 2 7B and 70B (Touvron et al. 2023,
/// config.json) and, at full effort, GPT-3 175B (Brown et al. 2020, table 2.1). Without
/// repetitions.
std::vector<Gemm> training_shapes(calib::Effort effort, DType dtype);
/// Cubes from 64 to 16384 in powers of two (quick: of four), and around 4096 the sizes that do not
/// divide into tiles: +1, +8, +64. fp8 only has multiples of 16.
std::vector<Gemm> grid_shapes(calib::Effort effort, DType dtype);

/// Tokens of an attention, powers of two from 512 (quick: 1024 and 4096) to 4096, at full effort to
/// 8192.
std::vector<std::int64_t> attention_lengths(calib::Effort effort);

/// 4 KiB … 1 GiB: powers of two at full effort, of four or sixteen below, and three sizes that are
/// no power of two, all multiples of 4 KiB.
std::vector<std::int64_t> copy_sizes(calib::Effort effort);
/// 4 KiB … 1 GiB in powers of two (four, sixteen), as nccl-tests sweep.
std::vector<std::int64_t> collective_sizes(calib::Effort effort);
/// 1 MiB … 8 GiB, at most `most`.
std::vector<std::int64_t> pin_sizes(calib::Effort effort, double most);
/// Traffic of a memory-bound kernel: 1 MiB … `most`, in powers of four (quick: of sixteen), and
/// `most` itself, rounded down to MiB.
std::vector<std::int64_t> traffic_sizes(calib::Effort effort, double most);

/// Copies of the data that make up `times` the cache when used in turn: at least 1, at most 256
/// (data below a hundredth of the cache then stay in it).
int rotation(double cache, double times, double footprint);

}  // namespace tidegate::cuda
