#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "validate/train/values.hpp"

/// Dense products of a linear layer, row-major, sums in fp32. Operands are numbers of `type`: of
/// bf16 and fp16 they are multiplied in 16 bits where the CPU has instructions for that
/// (calib/kernels/products.hpp), else as the fp32 numbers that they are. Each number is one sum
/// whose order follows from the shape, on one thread, so that on one machine results depend on
/// nothing but the operands.
namespace tidegate::train {

/// y[rows, out] = x[rows, in] W' with W [out, in].
Values times_transposed(std::span<const float> x, std::span<const float> w, std::int64_t rows,
                        std::int64_t in, std::int64_t out, DType type);
/// dx[rows, in] += dy[rows, out] W.
void add_input_gradient(std::span<const float> dy, std::span<const float> w, std::int64_t rows,
                        std::int64_t in, std::int64_t out, DType type, std::span<float> dx);
/// dW[out, in] = dy' x.
Values weight_gradient(std::span<const float> dy, std::span<const float> x, std::int64_t rows,
                       std::int64_t in, std::int64_t out, DType type);
/// Sum over the rows of [rows, width].
Values column_sums(std::span<const float> a, std::int64_t rows, std::int64_t width);

/// How products of operands of `type` are computed here: "in bf16 with sums in fp32 by oneDNN 2.6.3
/// (AMX, bf16)", "of the bf16 numbers in fp32 by OpenBLAS 0.3.21 (SkylakeX)".
std::string products_text(DType type);

}  // namespace tidegate::train
