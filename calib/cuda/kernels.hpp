#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

/// The kernels of the GPU benchmarks, all in one translation unit. Each enqueues on a stream of the
/// current GPU and throws MachineError when the launch is refused. Counts of elements are multiples
/// of 8 unless said. This header includes nothing of ours, because nvcc's host pass reads it.
namespace tidegate::cuda {

using StreamHandle = CUstream_st*;

/// Occupies the stream until *flag is not 0, or `timeout` nanoseconds have passed; then *timed_out
/// becomes 1. Both in pinned host memory.
void hold(StreamHandle stream, const int* flag, int* timed_out, std::uint64_t timeout);

/// Does nothing.
void nothing(StreamHandle stream);

/// at[i] = word(first + i, seed); and how many differ from that, added to *count.
void fill_words(StreamHandle stream, std::uint32_t* at, std::size_t n, std::uint32_t seed);
void count_wrong_words(StreamHandle stream, const std::uint32_t* at, std::size_t n,
                       std::uint32_t seed, unsigned long long* count);

/// at[i] = uniform(i, seed), rounded to nearest even.
void fill_fp32(StreamHandle stream, void* at, std::size_t n, std::uint32_t seed);
void fill_bf16(StreamHandle stream, void* at, std::size_t n, std::uint32_t seed);
void fill_fp16(StreamHandle stream, void* at, std::size_t n, std::uint32_t seed);
void fill_e4m3(StreamHandle stream, void* at, std::size_t n, std::uint32_t seed);

/// at[i] = share(first + i, rank); and how many differ from factor · share(first + i, 0).
void fill_shares(StreamHandle stream, float* at, std::size_t n, std::size_t first, int rank);
void count_wrong_shares(StreamHandle stream, const float* at, std::size_t n, std::size_t first,
                        float factor, unsigned long long* count);

/// a = b + scale · c, one rounding (fused).
void triad(StreamHandle stream, const float* b, const float* c, float scale, float* a,
           std::size_t n);
/// Rows of norm_width bf16 numbers: y = x / sqrt(mean(x²) + 1e-5).
constexpr std::size_t norm_width = 4096;
void rms_norm(StreamHandle stream, const void* x, void* y, std::size_t rows);
/// bf16: y = x/2 · (1 + tanh(sqrt(2/pi) · (x + 0.044715 x³))) (Hendrycks and Gimpel 2016).
void gelu(StreamHandle stream, const void* x, void* y, std::size_t n);
/// Causal softmax in place over `rows` rows of `tokens` bf16 numbers, row r of query i = r mod
/// tokens: x_j = exp(factor · (x_j - max)) / sum over j <= i, and 0 beyond. Any number of tokens.
void causal_softmax(StreamHandle stream, void* x, std::size_t rows, std::size_t tokens,
                    float factor);
/// One AdamW step in fp32 (Loshchilov and Hutter 2019) with rate 1e-3, betas 0.9 and 0.999, epsilon
/// 1e-8, decay 0.01 and the bias corrections of the first step.
void adam(StreamHandle stream, float* p, float* m, float* v, const float* g, std::size_t n);

/// Copies by the multiprocessors, 16 bytes a thread, on one block of 512 threads per
/// multiprocessor; either end may be pinned host memory.
void copy_by_threads(StreamHandle stream, void* to, const void* from, std::size_t bytes,
                     int blocks);

}  // namespace tidegate::cuda
