#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/run/predict.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/gpu_times/trace.hpp"

/// GPU operator times of a trace in place of a profile's: the profile's efficiency curves, scaled
/// until each class of operators takes what it took in the trace (docs/gpu_times.md).
namespace tidegate {

/// Kernel times of one steady iteration on GPU 0, by phase and class, without the gaps between
/// kernels (gpus.launch), which are no part of a trace's kernels either.
ClassTimes predicted_kernels(const Prediction& prediction, const Machine& machine);

struct ClassFit {
  KernelClass kind = KernelClass::elementwise;
  double predicted = 0, measured = 0;  ///< seconds of an iteration
  double reached = 0;                  ///< with the scaled curves; not measured when they end at 1
  double scale = 1;                    ///< of the profile's efficiencies
  /// measured / predicted of forward and of backward; 0 where one of the two is nothing.
  std::array<double, 2> by_phase{};
  double factor() const { return predicted > 0 ? measured / predicted : 0; }
};

/// Errors of totals (predicted / measured - 1) where the factors did not look.
struct HeldOut {
  int steps = 0;  ///< each predicted from the others
  double mean = 0, worst = 0;
  bool has_phases = false;
  double backward = 0;  ///< kernels of backward, from the factors of forward
};

struct GpuTimes {
  TracedSteps trace;
  std::array<ClassFit, computing_classes> classes;
  double collectives = 0, copies = 0;  ///< seconds of an iteration in the trace: not used
  HeldOut held_out;
  /// For the scenario: keys "machine.gpus.…_efficiency" and their texts.
  std::vector<Override> overrides;
};

/// Throws InputError when a class is in the trace and not in the scenario, or the reverse.
GpuTimes fit_gpu_times(TracedSteps trace, const ClassTimes& predicted, const Prediction& prediction,
                       const Machine& machine);

/// The texts of the scaled curves: value or points, assumed with what was done.
std::vector<Override> efficiency_overrides(const Gpu& gpu, const GpuTimes& times);

/// A line each, for a report's notes: where times come from, factors, what was held out.
std::vector<std::string> notes_of(const GpuTimes& times);

/// Seconds of the prediction's kernels of one class, with efficiencies of products, attention and
/// memory multiplied by these (none above 1).
struct Scales {
  double product = 1, attention = 1, memory = 1;
};
Gpu scaled(Gpu gpu, const Scales& scales);

}  // namespace tidegate
