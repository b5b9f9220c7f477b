#pragma once

#include "validate/train/backend.hpp"

namespace tidegate::train {

/// Checks every primitive of a backend, in fp32, bf16 and fp16 and over shapes of all kinds,
/// against the CPU's. What has IEEE operations alone has the same bits.
///
/// `functions`: how far sums of numbers that exp, log and their like have made may be from the
/// CPU's, in parts of the sum of their sizes, before they are rounded; 0: the same bits too. On a
/// GPU these functions are within 2 units in the last place of a double (CUDA C++ Programming
/// Guide, mathematical functions), so that a number rounded to fp32 differs by 2^-23 of itself at
/// most, and a sum of n <= 24 of them, rounded each time, by (1 + n / 2) · 2^-23 < 2^-19.
///
/// `products`: the same for a sum of k products, in units of k · 2^-24 of the sum of their sizes: 1
/// for sums in fp32 in any order (Higham 2002, section 3.1), 2 where additions are truncated.
void check_primitives(const Backend& backend, double functions, double products);

}  // namespace tidegate::train
