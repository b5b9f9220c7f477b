#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "validate/gpu_times/kernels.hpp"

/// A trace of the PyTorch profiler (Kineto's Chrome trace JSON), as kernel times per training step.
namespace tidegate {

/// What of a trace's events is kept, in microseconds of its clock.
struct TraceEvents {
  struct Kernel {
    double from = 0, duration = 0;
    std::int64_t correlation = -1, device = 0;
    KernelClass kind = KernelClass::elementwise;
  };
  /// A call that launched a kernel: its correlation, when, on which thread.
  struct Launch {
    std::int64_t correlation = -1, thread = 0;
    double at = 0;
  };
  struct Range {
    double from = 0, to = 0;
    std::int64_t thread = 0;
    bool contains(double t) const { return from <= t && t < to; }
  };
  std::vector<Kernel> kernels;
  std::vector<Launch> launches;
  std::vector<Range> steps;            ///< "ProfilerStep#N"
  std::vector<Range> updates;          ///< "Optimizer.step#…"
  std::vector<std::int64_t> autograd;  ///< threads that ran backward nodes
  /// Names of kernels that count as elementwise, with their microseconds, longest first.
  std::vector<std::pair<std::string, double>> elementwise_names;
};

/// Reads events one by one and keeps those above, so that memory goes with the kernels (56 B each,
/// and 24 B a launch) and not with the file. Throws InputError with line and column on text that is
/// not such JSON, or that is compressed.
TraceEvents read_trace(std::istream& text, const std::string& name);
TraceEvents load_trace(const std::string& path);

/// Kernel times of whole training steps.
///
/// A kernel belongs to the step in which it was launched. Its phase: backward when an autograd
/// thread launched it (recomputation is there too), update inside Optimizer.step, else forward; all
/// are `other` when the trace has no launches. Profiler steps that end without an optimizer step
/// are parts of the one that has it, where any has; beginnings and ends that are not whole are left
/// out.
struct TracedSteps {
  std::string file;
  std::vector<ClassTimes> steps;
  std::int64_t kernels = 0;  ///< of all steps
  std::int64_t profiler_steps = 0;
  std::int64_t device = 0, devices = 1;
  bool has_phases = false;
  std::vector<std::pair<std::string, double>> elementwise_names;
};
/// Throws InputError that names what the trace lacks: kernels, steps.
TracedSteps steps_of(const TraceEvents& events, const std::string& name);

}  // namespace tidegate
