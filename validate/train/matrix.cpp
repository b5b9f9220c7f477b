#include "validate/train/matrix.hpp"

#include <fmt/core.h>

#include "calib/kernels/kernels.hpp"
#include "calib/kernels/products.hpp"

namespace tidegate::train {
namespace {

constexpr int one_thread = 1;  // ranks are threads or processes of their own

std::size_t at(std::int64_t row, std::int64_t width) {
  return static_cast<std::size_t>(row * width);
}

std::vector<cpu::half> narrowed(std::span<const float> values, DType type) {
  std::vector<cpu::half> all(values.size());
  cpu::cast(values, type, all, one_thread);
  return all;
}

void multiply(const cpu::Product& product, std::span<const float> a, std::span<const float> b,
              DType type, std::span<float> c) {
  if (type == DType::fp32 || !cpu::multiplies(type)) {
    return cpu::multiply(product, a.data(), b.data(), c.data(), one_thread);
  }
  cpu::multiply(product, narrowed(a, type).data(), narrowed(b, type).data(), type, c.data(),
                one_thread);
}

}  // namespace

Values times_transposed(std::span<const float> x, std::span<const float> w, std::int64_t rows,
                        std::int64_t in, std::int64_t out, DType type) {
  Values y(at(rows, out));
  multiply({.m = rows, .n = out, .k = in, .b_is_transposed = true}, x, w, type, y);
  return y;
}

void add_input_gradient(std::span<const float> dy, std::span<const float> w, std::int64_t rows,
                        std::int64_t in, std::int64_t out, DType type, std::span<float> dx) {
  multiply({.m = rows, .n = in, .k = out, .adds = true}, dy, w, type, dx);
}

Values weight_gradient(std::span<const float> dy, std::span<const float> x, std::int64_t rows,
                       std::int64_t in, std::int64_t out, DType type) {
  Values dw(at(out, in));
  multiply({.m = out, .n = in, .k = rows, .a_is_transposed = true}, dy, x, type, dw);
  return dw;
}

Values column_sums(std::span<const float> a, std::int64_t rows, std::int64_t width) {
  Values sums(at(width, 1));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < width; ++i)
      sums[at(i, 1)] += a[at(r, width) + static_cast<std::size_t>(i)];
  }
  return sums;
}

std::string products_text(DType type) {
  if (type == DType::fp32) return fmt::format("in fp32 by {}", cpu::blas_name());
  if (cpu::multiplies(type)) {
    return fmt::format("in {} with sums in fp32 by {}", name_of(type), cpu::multiplier_name(type));
  }
  return fmt::format("of the {} numbers in fp32 by {} (in {}: {})", name_of(type), cpu::blas_name(),
                     name_of(type), cpu::multiplier_name(type));
}

}  // namespace tidegate::train
