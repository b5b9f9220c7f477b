#pragma once

#include <compare>
#include <cstdint>

#include "models/work.hpp"

/// Matrix products as a library with columns one after another is asked for them.
namespace tidegate::cuda {

/// C[m,n] = A[m,k] B[k,n], or C += A B, rows one after another. A batch is that many products of
/// operands and results that follow one another.
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool a_is_transposed = false;  ///< A lies as [k,m]
  bool b_is_transposed = false;  ///< B lies as [n,k]
  bool adds = false;
  DType operands = DType::fp32, result = DType::fp32;
  auto operator<=>(const Product&) const = default;
};

/// A matrix whose columns follow one another, `leading` elements apart; transposed before it is
/// multiplied or not.
struct ColumnLayout {
  std::int64_t rows = 0, columns = 0, leading = 0;
  bool is_transposed = false;
};

/// What lies as rows of C is, read by columns, C' = B' A': the library's first operand is B.
struct ColumnProduct {
  ColumnLayout b, a, c;
};
constexpr ColumnProduct by_columns(const Product& p) {
  return {.b = p.b_is_transposed ? ColumnLayout{p.k, p.n, p.k, true}
                                 : ColumnLayout{p.n, p.k, p.n, false},
          .a = p.a_is_transposed ? ColumnLayout{p.m, p.k, p.m, true}
                                 : ColumnLayout{p.k, p.m, p.k, false},
          .c = {p.n, p.m, p.n, false}};
}

}  // namespace tidegate::cuda
