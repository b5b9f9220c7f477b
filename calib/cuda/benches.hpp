#pragma once

#include <memory>
#include <span>
#include <string>

#include "calib/measure/bench.hpp"

/// The benchmarks of GPUs, their links and their storage. The table is the same in every build;
/// without CUDA each entry says "built without CUDA" and is never made.
///
///   quantity                    value     coordinates
///   gpu.gemm                    FLOP/s    m n k; dtype: bits of an operand (16 is bf16, 32 is fp32
///                                         without TF32, 8 is E4M3); pick: 0 the algorithm that
///                                         cuBLASLt's heuristic names first, 1 the fastest of 8
///   gpu.attention               FLOP/s    tokens, heads, dim, dtype: causal attention of bf16 with
///                                         scores in memory (products of all keys, softmax, sums),
///                                         counted as 2·heads·tokens²·dim, half of all products.
///                                         What a framework does without a fused kernel: it says
///                                         nothing of a fused one, and no efficiency is taken from
///                                         it
///   gpu.memory                  B/s       kernel: 0 triad, 1 norm, 2 gelu, 3 adam; bytes read and
///                                         written by one launch, from memory (rotating buffers)
///   gpu.launch                  seconds   kind: 0 host time of a launch, 1 GPU time of an empty
///                                         kernel that depends on the one before, 2 host time of
///                                         an event, 3 host time of a graph launch, 4 GPU time of a
///                                         kernel within a graph, 5 launch and wait; count
///   gpu.h2d, gpu.d2h            B/s       bytes; memory: 0 pageable, 1 pinned; by: 0 copy engine,
///                                         1 multiprocessors (zero-copy)
///   gpu.duplex                  B/s       bytes; part: 0 h2d beside d2h, 1 d2h beside h2d, 2 both
///                                         together, all bytes over the time of the slower
///   gpu.all_h2d, gpu.all_d2h    B/s       bytes; gpus: all at once, all bytes over the time of the
///                                         slowest
///   gpu.gemm_beside_copy        fraction  of the speed alone; copy: 0 h2d, 1 d2h, 2 both; n of the
///   gpu.copy_beside_gemm                  GEMM n x n x n
///   gpu.pin                     seconds   bytes; kind: 0 cudaHostAlloc, 1 cudaHostRegister, 2
///                                         cudaFreeHost, 3 cudaHostUnregister
///   gpu.peer                    B/s       bytes; from, to; direct: 1 when peer access is possible
///   gpu.all_reduce, …           B/s       bytes; ranks: bus bandwidth as nccl-tests define it
///   <path>.gds_read, …_write    B/s       block; way: 1 direct, 0 compatibility mode, -1 not told
///
/// "gpu", its index, is a further coordinate where there are several.
namespace tidegate::cuda {

std::span<const calib::BenchEntry> bench_table();

/// What the table points at: why each cannot run (empty when it can), and itself. Each has a source
/// of its own; without CUDA, without_cuda.cpp answers for all.
std::string why_no_gemm(const calib::Setup& setup);
std::string why_no_attention(const calib::Setup& setup);
std::string why_no_memory(const calib::Setup& setup);
std::string why_no_launch(const calib::Setup& setup);
std::string why_no_copies(const calib::Setup& setup);
std::string why_no_together(const calib::Setup& setup);
std::string why_no_interference(const calib::Setup& setup);
std::string why_no_pin(const calib::Setup& setup);
std::string why_no_peer(const calib::Setup& setup);
std::string why_no_collectives(const calib::Setup& setup);
std::string why_no_gds(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_gemm(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_attention(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_memory(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_launch(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_copies(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_together(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_interference(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_pin(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_peer(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_collectives(const calib::Setup& setup);
std::unique_ptr<calib::Bench> make_gds(const calib::Setup& setup);

}  // namespace tidegate::cuda
