#pragma once

#include <cstdint>

/// Numbers of 16 bits, one by one: the specification of every cast.
///
///   fp16 (IEEE 754 binary16)   1 sign, 5 exponent, 10 fraction bits
///   bf16                       the upper half of a binary32
///
/// To 16 bits: round to nearest, ties to even; what is too large becomes infinite, subnormal
/// numbers are kept. A NaN keeps its sign and upper fraction bits and is made quiet. From 16 bits:
/// exact; a signalling fp16 NaN is made quiet as F16C does.
namespace tidegate::cpu {

using half = std::uint16_t;  ///< bits of a bf16 or fp16 number

half to_bf16(float value);
half to_fp16(float value);
float from_bf16(half bits);
float from_fp16(half bits);

}  // namespace tidegate::cpu
