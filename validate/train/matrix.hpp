#pragma once

#include <cstdint>
#include <span>

#include "validate/train/values.hpp"

/// Dense products of a linear layer, row-major fp32. Each number is one sum in one fixed order, so
/// results depend on nothing but the operands.
namespace tidegate::train {

/// y[rows, out] = x[rows, in] W' with W [out, in].
Values times_transposed(std::span<const float> x, std::span<const float> w, std::int64_t rows,
                        std::int64_t in, std::int64_t out);
/// dx[rows, in] += dy[rows, out] W.
void add_input_gradient(std::span<const float> dy, std::span<const float> w, std::int64_t rows,
                        std::int64_t in, std::int64_t out, std::span<float> dx);
/// dW[out, in] = dy' x.
Values weight_gradient(std::span<const float> dy, std::span<const float> x, std::int64_t rows,
                       std::int64_t in, std::int64_t out);
/// Sum over the rows of [rows, width].
Values column_sums(std::span<const float> a, std::int64_t rows, std::int64_t width);

}  // namespace tidegate::train
