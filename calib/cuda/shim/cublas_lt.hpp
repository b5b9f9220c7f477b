#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "calib/cuda/shim/handles.hpp"
#include "calib/cuda/shim/product.hpp"
#include "models/work.hpp"

/// cuBLASLt (libcublasLt): the matrix products that a framework calls.
namespace tidegate::cuda {

/// Empty when the library can be opened. Slow the first time: it is hundreds of megabytes.
std::string why_no_cublas_lt();
/// 130100 is 13.1.0. Of a library that can be opened.
std::size_t cublas_lt_version();

/// How the second operand lies: by outputs [n,k], as weights of a linear layer do, or by inputs
/// [k,n].
enum class Weights : std::uint8_t { by_outputs, by_inputs };

/// y[m,n] = x[m,k] · w[n,k]ᵀ, or x[m,k] · w[k,n], row-major: the former is a linear layer's forward
/// pass, and the one layout that fp8 has on Hopper. Accumulates in fp32. fp32 operands are
/// multiplied as fp32, without TF32, which is the default of frameworks; fp8 is E4M3 with scales of
/// 1, accumulated exactly as asked (no "fast accumulation"), and writes bf16. Other types write
/// their own. A batch is that many products of operands and results that follow one another.
///
/// Of a Product a is x and b is w. Runs give the same bits among themselves on one GPU and version
/// of the library: each Matmul has a workspace of its own, and the heuristic's first algorithm
/// follows from the shape (cuBLAS documentation, "Results Reproducibility").
class Matmul {
 public:
  /// Asks the library's heuristic for at most `most` algorithms, best first. Throws MachineError
  /// when it has none for the shape.
  Matmul(int device, const Gemm& shape, int most, Weights weights = Weights::by_outputs);
  Matmul(int device, const Product& product, int most);
  ~Matmul();
  Matmul(Matmul&& other) noexcept;
  Matmul& operator=(Matmul&& other) noexcept;

  int algorithms() const;
  void enqueue(const Stream& stream, int algorithm, const void* x, const void* w, void* y) const;
  std::size_t version() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Type of y for operands of `operands`.
constexpr DType result_type(DType operands) {
  return operands == DType::fp8 ? DType::bf16 : operands;
}

}  // namespace tidegate::cuda
