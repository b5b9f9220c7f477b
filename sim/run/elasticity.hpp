#pragma once

#include "models/machine.hpp"
#include "sim/run/predict.hpp"

namespace tidegate {

/// Fills report.elasticities: by how many percent an iteration shortens when a kind of resource
/// becomes 1 % faster, from one more simulation of the same plan for each.
///
///   elasticity = (t / t' - 1) / 1 %,   t' the iteration time with the resource's capacity · 1.01
///
/// Resources whose names differ only in numbers (the GPUs of a node) become faster together. A task
/// that takes nine tenths of such a resource or more while alone is done 1 % sooner, unless another
/// resource holds it as much; others take 1 % less of it. Asked for kinds
/// that are exposed for at least 0.5 % of the iteration, most exposed first, eight at most.
///
/// Fills report.doubled likewise: the kind with the largest elasticity made twice as fast (a task
/// at its pace ends sooner by that, or by what the next resource that it uses allows), and which
/// kind has the largest elasticity then.
void add_elasticities(Prediction& prediction);

}  // namespace tidegate
