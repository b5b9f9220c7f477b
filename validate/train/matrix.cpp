#include "validate/train/matrix.hpp"

namespace tidegate::train {
namespace {

std::size_t at(std::int64_t row, std::int64_t width) {
  return static_cast<std::size_t>(row * width);
}

}  // namespace

Values times_transposed(std::span<const float> x, std::span<const float> w, std::int64_t rows,
                        std::int64_t in, std::int64_t out) {
  Values y(at(rows, out));
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x.data() + at(r, in);
    for (std::int64_t o = 0; o < out; ++o) {
      const float* column = w.data() + at(o, in);
      float sum = 0;
      for (std::int64_t i = 0; i < in; ++i) sum += row[i] * column[i];
      y[at(r, out) + static_cast<std::size_t>(o)] = sum;
    }
  }
  return y;
}

void add_input_gradient(std::span<const float> dy, std::span<const float> w, std::int64_t rows,
                        std::int64_t in, std::int64_t out, std::span<float> dx) {
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = dx.data() + at(r, in);
    for (std::int64_t o = 0; o < out; ++o) {
      const float d = dy[at(r, out) + static_cast<std::size_t>(o)];
      const float* column = w.data() + at(o, in);
      for (std::int64_t i = 0; i < in; ++i) row[i] += d * column[i];
    }
  }
}

Values weight_gradient(std::span<const float> dy, std::span<const float> x, std::int64_t rows,
                       std::int64_t in, std::int64_t out) {
  Values dw(at(out, in));
  for (std::int64_t r = 0; r < rows; ++r) {
    const float* row = x.data() + at(r, in);
    for (std::int64_t o = 0; o < out; ++o) {
      const float d = dy[at(r, out) + static_cast<std::size_t>(o)];
      float* column = dw.data() + at(o, in);
      for (std::int64_t i = 0; i < in; ++i) column[i] += d * row[i];
    }
  }
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

}  // namespace tidegate::train
