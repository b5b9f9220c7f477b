#include "calib/cuda/verify.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "models/base/error.hpp"

namespace tidegate::cuda {
namespace {

// Sign, exponent and mantissa of a small float with subnormals and without special values.
double small_float(unsigned bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned mantissa = bits & ((1U << mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1U << exponent_bits) - 1));
  const bool is_negative = (bits >> (mantissa_bits + exponent_bits) & 1U) != 0;
  const int hidden = exponent == 0 ? 0 : 1 << mantissa_bits;
  const double size =
      std::ldexp(hidden + static_cast<int>(mantissa), std::max(exponent, 1) - bias - mantissa_bits);
  return is_negative ? -size : size;
}

double decode_fp16(std::uint16_t bits) {
  if ((bits & 0x7C00U) != 0x7C00U) return small_float(bits, 5, 10);
  if ((bits & 0x3FFU) != 0) return std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return (bits & 0x8000U) != 0 ? -infinity : infinity;
}

double decode_e4m3(std::uint8_t bits) {
  if ((bits & 0x7FU) == 0x7FU) return std::numeric_limits<double>::quiet_NaN();
  return small_float(bits, 4, 3);
}

template <class T>
T load(std::span<const std::byte> data, std::size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

double unit_roundoff(DType type) {
  switch (type) {
    case DType::fp32:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-8;
    case DType::fp16:
      return 0x1p-11;
    case DType::fp8:
      return 0x1p-4;
  }
  return 0;
}

}  // namespace

double decode(std::span<const std::byte> data, DType type, std::size_t i) {
  switch (type) {
    case DType::fp32:
      return static_cast<double>(load<float>(data, i));
    case DType::bf16:
      return static_cast<double>(
          std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(data, i)) << 16));
    case DType::fp16:
      return decode_fp16(load<std::uint16_t>(data, i));
    case DType::fp8:
      return decode_e4m3(load<std::uint8_t>(data, i));
  }
  return 0;
}

Dot dot(std::span<const std::byte> a, std::span<const std::byte> b, DType type) {
  ensure(a.size() == b.size(), "a dot product has vectors of one length");
  Dot result;
  result.length = a.size() / static_cast<std::size_t>(bytes_per_element(type));
  for (std::size_t i = 0; i < result.length; ++i) {
    const double product = decode(a, type, i) * decode(b, type, i);
    result.value += product;
    result.magnitude += std::abs(product);
    result.largest = std::max(result.largest, std::abs(result.value));
  }
  return result;
}

double tolerance(const Dot& exact, DType operands, DType result) {
  const double accumulation = operands == DType::fp8 ? 0x1p-13 : 0x1p-23;
  return 8 * accumulation * std::sqrt(static_cast<double>(exact.length)) * exact.largest +
         unit_roundoff(result) * std::abs(exact.value);
}

bool agrees(double measured, const Dot& exact, DType operands, DType result) {
  return std::abs(measured - exact.value) <= tolerance(exact, operands, result);
}

bool looks_uniform(const Dot& dot) {
  if (dot.length < 256) return dot.magnitude > 0;
  return std::abs(dot.magnitude / static_cast<double>(dot.length) - 0.25) < 0.1;
}

std::vector<double> causal_softmax(std::span<const double> scores, std::size_t i, double factor) {
  std::vector<double> shares(scores.size());
  const double most = *std::max_element(scores.begin(), scores.begin() + static_cast<long>(i) + 1);
  double sum = 0;
  for (std::size_t j = 0; j <= i; ++j) sum += shares[j] = std::exp(factor * (scores[j] - most));
  for (double& share : shares) share /= sum;
  return shares;
}

std::vector<double> attention_row(std::span<const std::byte> q, std::span<const std::byte> k,
                                  std::span<const std::byte> v, DType type, std::size_t dim,
                                  std::size_t i) {
  const auto line = static_cast<std::size_t>(static_cast<double>(dim) * bytes_per_element(type));
  std::vector<double> scores;
  for (std::size_t j = 0; j <= i; ++j)
    scores.push_back(dot(q.subspan(i * line, line), k.subspan(j * line, line), type).value);
  const double factor = 1 / std::sqrt(static_cast<double>(dim));
  const std::vector<double> shares = causal_softmax(scores, i, factor);
  std::vector<double> row(dim);
  for (std::size_t j = 0; j <= i; ++j) {
    for (std::size_t d = 0; d < dim; ++d) row[d] += shares[j] * decode(v, type, j * dim + d);
  }
  return row;
}

double attention_tolerance(std::size_t i) {
  return 4 * 0x1p-8 / std::sqrt(static_cast<double>(i + 1));
}

}  // namespace tidegate::cuda
