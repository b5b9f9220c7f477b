#include "calib/cuda/kernels.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "calib/cuda/shim/check.hpp"
#include "calib/cuda/values.hpp"

namespace tidegate::cuda {
namespace {

constexpr unsigned threads = 256;

unsigned blocks_for(std::size_t items) {
  return static_cast<unsigned>((items + threads - 1) / threads);
}

__device__ std::size_t here() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void hold_kernel(const volatile int* flag, volatile int* timed_out,
                            std::uint64_t timeout) {
  const std::uint64_t begin = nanoseconds();
  while (*flag == 0) {
    if (nanoseconds() - begin > timeout) {
      *timed_out = 1;
      __threadfence_system();
      return;
    }
    __nanosleep(200);
  }
}

__global__ void nothing_kernel() {}

__global__ void fill_words_kernel(std::uint32_t* at, std::size_t n, std::uint32_t seed) {
  if (const std::size_t i = here(); i < n) at[i] = word(i, seed);
}

__global__ void count_wrong_words_kernel(const std::uint32_t* at, std::size_t n, std::uint32_t seed,
                                         unsigned long long* count) {
  const std::size_t i = here();
  if (i < n && at[i] != word(i, seed)) atomicAdd(count, 1ULL);
}

__device__ void store(float* at, float value) { *at = value; }
__device__ void store(__nv_bfloat16* at, float value) { *at = __float2bfloat16_rn(value); }
__device__ void store(__half* at, float value) { *at = __float2half_rn(value); }
__device__ void store(__nv_fp8_e4m3* at, float value) { *at = __nv_fp8_e4m3(value); }

template <class T>
__global__ void fill_uniform_kernel(T* at, std::size_t n, std::uint32_t seed) {
  if (const std::size_t i = here(); i < n) store(at + i, uniform(i, seed));
}

template <class T>
void fill_as(StreamHandle stream, void* at, std::size_t n, std::uint32_t seed) {
  fill_uniform_kernel<<<blocks_for(n), threads, 0, stream>>>(static_cast<T*>(at), n, seed);
  TIDEGATE_CUDA(cudaGetLastError());
}

__global__ void fill_shares_kernel(float* at, std::size_t n, std::size_t first, int rank) {
  if (const std::size_t i = here(); i < n) at[i] = share(first + i, rank);
}

__global__ void count_wrong_shares_kernel(const float* at, std::size_t n, std::size_t first,
                                          float factor, unsigned long long* count) {
  const std::size_t i = here();
  if (i < n && at[i] != factor * share(first + i, 0)) atomicAdd(count, 1ULL);
}

__global__ void triad_kernel(const float4* b, const float4* c, float scale, float4* a,
                             std::size_t n) {
  const std::size_t i = here();
  if (i >= n) return;
  const float4 x = b[i], y = c[i];
  a[i] = make_float4(fmaf(scale, y.x, x.x), fmaf(scale, y.y, x.y), fmaf(scale, y.z, x.z),
                     fmaf(scale, y.w, x.w));
}

// Eight bf16 numbers as one 16-byte load.
struct alignas(16) Eight {
  __nv_bfloat162 pair[4];
};

__device__ float sum_over_block(float value) {
  __shared__ float parts[threads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (const float part : parts) sum += part;
  return sum;
}

__global__ void rms_norm_kernel(const Eight* x, Eight* y) {
  constexpr unsigned each = norm_width / 8 / threads;
  const std::size_t begin = static_cast<std::size_t>(blockIdx.x) * (norm_width / 8) + threadIdx.x;
  Eight held[each];
  float squares = 0;
  for (unsigned j = 0; j < each; ++j) {
    held[j] = x[begin + j * threads];
    for (const auto& pair : held[j].pair) {
      const float2 two = __bfloat1622float2(pair);
      squares += two.x * two.x + two.y * two.y;
    }
  }
  const float scale = rsqrtf(sum_over_block(squares) / norm_width + 1e-5F);
  for (unsigned j = 0; j < each; ++j) {
    for (auto& pair : held[j].pair) {
      const float2 two = __bfloat1622float2(pair);
      pair = __floats2bfloat162_rn(two.x * scale, two.y * scale);
    }
    y[begin + j * threads] = held[j];
  }
}

__device__ float largest_of_block(float value) {
  __shared__ float parts[threads / 32];
  for (int step = 16; step > 0; step /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, step));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  float most = parts[0];
  for (const float part : parts) most = fmaxf(most, part);
  return most;
}

// A block for each row, read three times: a row stays in the cache.
__global__ void causal_softmax_kernel(__nv_bfloat16* x, std::size_t tokens, float factor) {
  __nv_bfloat16* row = x + static_cast<std::size_t>(blockIdx.x) * tokens;
  const std::size_t count = blockIdx.x % tokens + 1;
  float most = -INFINITY;
  for (std::size_t j = threadIdx.x; j < count; j += threads)
    most = fmaxf(most, __bfloat162float(row[j]));
  most = largest_of_block(most);
  float sum = 0;
  for (std::size_t j = threadIdx.x; j < count; j += threads)
    sum += expf(factor * (__bfloat162float(row[j]) - most));
  const float share = 1 / sum_over_block(sum);
  for (std::size_t j = threadIdx.x; j < tokens; j += threads) {
    const float value =
        j < count ? expf(factor * (__bfloat162float(row[j]) - most)) * share : 0.0F;
    row[j] = __float2bfloat16_rn(value);
  }
}

__device__ float gelu_of(float x) {
  return 0.5F * x * (1 + tanhf(0.7978845608F * (x + 0.044715F * x * x * x)));
}

__global__ void gelu_kernel(const Eight* x, Eight* y, std::size_t n) {
  const std::size_t i = here();
  if (i >= n) return;
  Eight eight = x[i];
  for (auto& pair : eight.pair) {
    const float2 two = __bfloat1622float2(pair);
    pair = __floats2bfloat162_rn(gelu_of(two.x), gelu_of(two.y));
  }
  y[i] = eight;
}

__device__ void adam_step(float& p, float& m, float& v, float g) {
  constexpr float rate = 1e-3F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, decay = 0.01F;
  m = beta1 * m + (1 - beta1) * g;
  v = beta2 * v + (1 - beta2) * g * g;
  p = p * (1 - rate * decay) - rate * (m / (1 - beta1)) / (sqrtf(v / (1 - beta2)) + epsilon);
}

__global__ void adam_kernel(float4* p, float4* m, float4* v, const float4* g, std::size_t n) {
  const std::size_t i = here();
  if (i >= n) return;
  float4 a = p[i], b = m[i], c = v[i];
  const float4 d = g[i];
  adam_step(a.x, b.x, c.x, d.x);
  adam_step(a.y, b.y, c.y, d.y);
  adam_step(a.z, b.z, c.z, d.z);
  adam_step(a.w, b.w, c.w, d.w);
  p[i] = a;
  m[i] = b;
  v[i] = c;
}

__global__ void copy_kernel(uint4* to, const uint4* from, std::size_t n) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = here(); i < n; i += stride) to[i] = from[i];
}

}  // namespace

void hold(StreamHandle stream, const int* flag, int* timed_out, std::uint64_t timeout) {
  hold_kernel<<<1, 1, 0, stream>>>(flag, timed_out, timeout);
  TIDEGATE_CUDA(cudaGetLastError());
}

void nothing(StreamHandle stream) {
  nothing_kernel<<<1, 1, 0, stream>>>();
  TIDEGATE_CUDA(cudaGetLastError());
}

void fill_words(StreamHandle stream, std::uint32_t* at, std::size_t n, std::uint32_t seed) {
  fill_words_kernel<<<blocks_for(n), threads, 0, stream>>>(at, n, seed);
  TIDEGATE_CUDA(cudaGetLastError());
}

void count_wrong_words(StreamHandle stream, const std::uint32_t* at, std::size_t n,
                       std::uint32_t seed, unsigned long long* count) {
  count_wrong_words_kernel<<<blocks_for(n), threads, 0, stream>>>(at, n, seed, count);
  TIDEGATE_CUDA(cudaGetLastError());
}

void fill_fp32(StreamHandle stream, void* at, std::size_t n, std::uint32_t seed) {
  fill_as<float>(stream, at, n, seed);
}
void fill_bf16(StreamHandle stream, void* at, std::size_t n, std::uint32_t seed) {
  fill_as<__nv_bfloat16>(stream, at, n, seed);
}
void fill_fp16(StreamHandle stream, void* at, std::size_t n, std::uint32_t seed) {
  fill_as<__half>(stream, at, n, seed);
}
void fill_e4m3(StreamHandle stream, void* at, std::size_t n, std::uint32_t seed) {
  fill_as<__nv_fp8_e4m3>(stream, at, n, seed);
}

void fill_shares(StreamHandle stream, float* at, std::size_t n, std::size_t first, int rank) {
  fill_shares_kernel<<<blocks_for(n), threads, 0, stream>>>(at, n, first, rank);
  TIDEGATE_CUDA(cudaGetLastError());
}

void count_wrong_shares(StreamHandle stream, const float* at, std::size_t n, std::size_t first,
                        float factor, unsigned long long* count) {
  count_wrong_shares_kernel<<<blocks_for(n), threads, 0, stream>>>(at, n, first, factor, count);
  TIDEGATE_CUDA(cudaGetLastError());
}

void triad(StreamHandle stream, const float* b, const float* c, float scale, float* a,
           std::size_t n) {
  triad_kernel<<<blocks_for(n / 4), threads, 0, stream>>>(reinterpret_cast<const float4*>(b),
                                                          reinterpret_cast<const float4*>(c), scale,
                                                          reinterpret_cast<float4*>(a), n / 4);
  TIDEGATE_CUDA(cudaGetLastError());
}

void rms_norm(StreamHandle stream, const void* x, void* y, std::size_t rows) {
  rms_norm_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(static_cast<const Eight*>(x),
                                                                       static_cast<Eight*>(y));
  TIDEGATE_CUDA(cudaGetLastError());
}

void causal_softmax(StreamHandle stream, void* x, std::size_t rows, std::size_t tokens,
                    float factor) {
  causal_softmax_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(
      static_cast<__nv_bfloat16*>(x), tokens, factor);
  TIDEGATE_CUDA(cudaGetLastError());
}

void gelu(StreamHandle stream, const void* x, void* y, std::size_t n) {
  gelu_kernel<<<blocks_for(n / 8), threads, 0, stream>>>(static_cast<const Eight*>(x),
                                                         static_cast<Eight*>(y), n / 8);
  TIDEGATE_CUDA(cudaGetLastError());
}

void adam(StreamHandle stream, float* p, float* m, float* v, const float* g, std::size_t n) {
  adam_kernel<<<blocks_for(n / 4), threads, 0, stream>>>(
      reinterpret_cast<float4*>(p), reinterpret_cast<float4*>(m), reinterpret_cast<float4*>(v),
      reinterpret_cast<const float4*>(g), n / 4);
  TIDEGATE_CUDA(cudaGetLastError());
}

void copy_by_threads(StreamHandle stream, void* to, const void* from, std::size_t bytes,
                     int blocks) {
  copy_kernel<<<static_cast<unsigned>(blocks), 512, 0, stream>>>(
      static_cast<uint4*>(to), static_cast<const uint4*>(from), bytes / 16);
  TIDEGATE_CUDA(cudaGetLastError());
}

}  // namespace tidegate::cuda
