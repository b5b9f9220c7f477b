#pragma once

#include <cstdint>
#include <string>

#include "calib/kernels/half.hpp"
#include "models/work.hpp"

/// Matrix products and what is made of them, by tuned libraries: fp32 by the BLAS (gemm of
/// kernels.hpp), 16 bits with fp32 sums by oneDNN.
///
/// Bits: the same for the same shape, operands and number of threads on one machine, since each
/// number is a sum whose order follows from these alone; another machine or library adds in another
/// order.
namespace tidegate::cpu {

/// C[m,n] = A[m,k] B[k,n], or C += A B; all row-major.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_is_transposed = false;  ///< A lies as [k,m]
  bool b_is_transposed = false;  ///< B lies as [n,k]
  bool adds = false;
};
void multiply(const Product& product, const float* a, const float* b, float* c, int threads);
/// Operands of 16 bits. Throws std::logic_error where multiplies(type) is false.
void multiply(const Product& product, const half* a, const half* b, DType type, float* c,
              int threads);

/// Whether this CPU has instructions that multiply matrices of the type, and the build a library
/// that uses them: AVX512_BF16 or AMX for bf16, AVX512_FP16 for fp16 (oneDNN from 3 on). Where it
/// has none, a library may still compute such products, by fp32 ones; we then do so ourselves. fp32
/// always.
bool multiplies(DType type);
/// "oneDNN 2.6.3 (AMX, bf16)"; where multiplies(type) is false why it is not so.
std::string multiplier_name(DType type);

/// Causal attention of independent heads, queries, keys and values [heads, tokens, dim]:
///   out_i = sum over j <= i of p_ij v_j,  p_i = softmax over j <= i of q_i·k_j / sqrt(dim)
struct HeadsOfAttention {
  std::int64_t heads = 0, tokens = 0, dim = 0;
};
/// in_memory: the scores of all heads, then their softmax, then the sums over values, each over all
/// keys, as a framework without a fused kernel does. in_cache: block by block of queries, over the
/// keys up to the block's last, so that scores stay in a cache, as fused kernels do.
enum class Scores : std::uint8_t { in_memory, in_cache };
/// Scratch for `scores` (fp32) and, with operands of 16 bits, for the probabilities.
std::int64_t score_count(const HeadsOfAttention& heads, Scores scores, int threads);
void attention(const HeadsOfAttention& heads, Scores kind, const float* q, const float* k,
               const float* v, float* scores, float* out, int threads);
/// Products and probabilities of 16 bits, sums and the softmax in fp32. As multiply.
void attention(const HeadsOfAttention& heads, Scores kind, const half* q, const half* k,
               const half* v, DType type, float* scores, half* probabilities, float* out,
               int threads);

}  // namespace tidegate::cpu
