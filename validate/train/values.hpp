#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/work.hpp"

/// Numbers of a training step: computed in fp32, stored in the type that the layer graph names.
namespace tidegate::train {

/// Row-major fp32.
using Values = std::vector<float>;

/// `value` as a number of `type` stores it: rounded to nearest even; fp32 stays as it is.
float rounded(float value, DType type);
void round_all(std::span<float> values, DType type);

/// Bits of a 16-bit number and back. bf16 and fp16 alone.
std::uint16_t to_half(float value, DType type);
float from_half(std::uint16_t bits, DType type);

/// A storage of `width` bytes an element: 8 integers, 4 fp32, 2 numbers of `type`. Values that are
/// no such number are rounded; reading gives back what was stored, exactly.
std::vector<std::byte> encode(std::span<const float> values, std::int64_t width, DType type);
Values decode(std::span<const std::byte> bytes, std::int64_t width, DType type);

/// Random numbers by position: the same for every order of asking and every number of threads.
/// uniform in [0, 1); normal with mean 0 and variance 1 (Box and Muller 1958).
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t position);
double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t position);

}  // namespace tidegate::train
