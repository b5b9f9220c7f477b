#include "validate/train/values.hpp"

#include <cmath>
#include <cstring>
#include <numbers>

#include "calib/kernels/half.hpp"
#include "models/base/error.hpp"

namespace tidegate::train {
namespace {

template <class T, class Make>
std::vector<std::byte> pack(std::span<const float> values, Make make) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T item = make(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &item, sizeof(T));
  }
  return bytes;
}

template <class T, class Make>
Values unpack(std::span<const std::byte> bytes, Make make) {
  Values values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T item;
    std::memcpy(&item, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = make(item);
  }
  return values;
}

// Steele, Lea and Flood 2014, SplitMix64: its output function.
std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace

std::uint16_t to_half(float value, DType type) {
  ensure(type == DType::bf16 || type == DType::fp16, "a type of 16 bits");
  return type == DType::bf16 ? cpu::to_bf16(value) : cpu::to_fp16(value);
}

float from_half(std::uint16_t bits, DType type) {
  ensure(type == DType::bf16 || type == DType::fp16, "a type of 16 bits");
  return type == DType::bf16 ? cpu::from_bf16(bits) : cpu::from_fp16(bits);
}

float rounded(float value, DType type) {
  return type == DType::fp32 ? value : from_half(to_half(value, type), type);
}

void round_all(std::span<float> values, DType type) {
  if (type == DType::fp32) return;
  for (float& v : values) v = rounded(v, type);
}

std::vector<std::byte> encode(std::span<const float> values, std::int64_t width, DType type) {
  if (width == 8)
    return pack<std::int64_t>(values, [](float v) { return static_cast<std::int64_t>(v); });
  if (width == 4) return pack<float>(values, [](float v) { return v; });
  ensure(width == 2, "a storage of 8, 4 or 2 bytes an element");
  return pack<std::uint16_t>(values, [type](float v) { return to_half(v, type); });
}

Values decode(std::span<const std::byte> bytes, std::int64_t width, DType type) {
  if (width == 8)
    return unpack<std::int64_t>(bytes, [](std::int64_t v) { return static_cast<float>(v); });
  if (width == 4) return unpack<float>(bytes, [](float v) { return v; });
  ensure(width == 2, "a storage of 8, 4 or 2 bytes an element");
  return unpack<std::uint16_t>(bytes, [type](std::uint16_t v) { return from_half(v, type); });
}

double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  const std::uint64_t bits = mixed(mixed(mixed(seed) ^ stream) ^ position);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  const double radius = std::sqrt(-2 * std::log(1 - uniform(seed, stream, 2 * position)));
  return radius * std::cos(2 * std::numbers::pi * uniform(seed, stream, 2 * position + 1));
}

}  // namespace tidegate::train
