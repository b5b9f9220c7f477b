#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

/// The plain twin of the softmax kernel: row i over its first i + 1 numbers, zero beyond.
std::vector<double> causal_softmax(std::span<const double> scores, std::size_t i, double factor);
/// Row `i` of one head's causal attention over packed [tokens, dim], in double:
/// softmax over j <= i of q_i·k_j / sqrt(dim), summed over the values.
std::vector<double> attention_row(std::span<const std::byte> q, std::span<const std::byte> k,
                                  std::span<const std::byte> v, DType type, std::size_t dim,
                                  std::size_t i);
/// How far row i of attention in bf16, scores and probabilities rounded too, over uniform values
/// may be from that: 4 · 2^-8 / sqrt(i + 1). Roundings by up to 2^-9 go to both sides alike, so
/// that their sum over i + 1 keys deviates by less than 2^-8 / sqrt(i + 1); the row itself deviates
/// by 0.58 / sqrt(i + 1), so that zeros and other rows show.
double attention_tolerance(std::size_t i);

}  // namespace tidegate::cuda
