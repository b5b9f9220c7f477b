#pragma once

#include <cstdint>
#include <variant>

#include "validate/train/kernels/attention.hpp"
#include "validate/train/kernels/elements.hpp"
#include "validate/train/kernels/rows.hpp"

namespace tidegate::train::kernels {

/// One launch: what is done for every i from 0 to a count, each by a thread of its own and in any
/// order, because none writes what another touches. Kernels with one operation of IEEE 754 after
/// the other, and those whose functions (exp, log, erf, pow, sin, cos) are the CPU's, give the bits
/// of the CPU's backend; the compiler must not fuse multiplications and additions.
using Kernel =
    std::variant<Narrow, Round, Add, AddToRows, Multiply, ColumnSums, Activate, ActivateBackward,
                 Turn, SumGroups, Adam, Sgd, Norm, NormBackward, NormParameters, Embed,
                 EmbedBackward, CrossEntropyRows, CrossEntropyBackward, AttentionForward,
                 AttentionQueries, AttentionKeys>;

}  // namespace tidegate::train::kernels
