#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/work.hpp"

/// Arithmetic that checks what a GPU computed, on the host and in double.
namespace tidegate::cuda {

/// The i-th number of packed data of a type; fp8 is E4M3 (OCP 8-bit floating point: no infinities,
/// exponent bias 7, all ones is NaN).
double decode(std::span<const std::byte> data, DType type, std::size_t i);

/// A dot product as it should be.
struct Dot {
  double value = 0;
  double magnitude = 0;  ///< Σ |a b|
  double largest = 0;    ///< of the partial sums' absolute values, in order
  std::size_t length = 0;
};
/// Of two vectors of equal length in packed form, exactly as stored.
Dot dot(std::span<const std::byte> a, std::span<const std::byte> b, DType type);

/// How far a correct GPU result may be from the exact one:
///   8 · u · sqrt(k) · largest + r · |value|
/// u is the unit roundoff of the accumulation, 2^-23 (tensor cores truncate), for fp8 2^-13
/// (Hopper's tensor cores keep 14 bits, DeepSeek-V3 report 2024, section 3.3.2); r that of the
/// result's type. The root of k and the factor 8 are the probabilistic bound of Higham and Mary
/// 2019.
double tolerance(const Dot& exact, DType operands, DType result);
bool agrees(double measured, const Dot& exact, DType operands, DType result);

/// Whether operands were really the uniform numbers: E|a b| is 1/4, within a tenth of 1 for at
/// least 256 products (standard deviation of the mean there 0.014).
bool looks_uniform(const Dot& dot);

}  // namespace tidegate::cuda
