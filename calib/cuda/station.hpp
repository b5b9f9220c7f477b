#pragma once

#include <functional>
#include <memory>
#include <string>

#include "calib/cuda/facts.hpp"
#include "calib/cuda/gate.hpp"
#include "calib/cuda/shim/handles.hpp"
#include "calib/cuda/shim/nvml.hpp"
#include "calib/cuda/timing.hpp"
#include "calib/measure/bench.hpp"

/// What every benchmark of a GPU needs: a stream, an eye on the clock, a counter of faults.
namespace tidegate::cuda {

/// Operations timed behind the gate.
struct Timed {
  Seconds each;  ///< mean of one operation: all time over all operations
  Seconds in_all;
  std::string spoiled;  ///< as calib::Sample says it
};

class Station {
 public:
  explicit Station(const GpuFacts& gpu);

  const GpuFacts& gpu() const { return gpu_; }
  const Stream& stream() const { return stream_; }

  /// Runs `operation(i)`, i counting up over everything, once outside the gate, then for about
  /// `target` behind it. The clock is read while the GPU works; after a spoiled sample the next one
  /// waits, longer each time (50 ms, doubled up to 2 s), for the GPU to recover.
  Timed time(Seconds target, Needs needs, const std::function<void(int)>& operation);

  /// Why the last reading spoils a sample; to be asked for while the GPU works.
  std::string look(Needs needs) const;
  /// Waits if the last sample was spoiled.
  void recover(const std::string& spoiled);

  /// Faults found by `count`, which enqueues a counting kernel with the counter's address.
  unsigned long long faults(const std::function<void(unsigned long long*)>& count);

 private:
  GpuFacts gpu_;
  Stream stream_;
  DeviceBuffer counter_;
  std::unique_ptr<Nvml> nvml_;
  Nvml::Handle handle_ = nullptr;
  Seconds pause_{0};
};

/// at[i] = uniform(i, seed) of values.hpp, rounded to nearest even.
void fill_uniform(const Stream& stream, void* at, DType type, std::size_t n, std::uint32_t seed);

/// Why nothing can be measured on GPUs here ("no GPU: …"); empty when it can.
std::string why_no_gpu();

/// A row on a GPU. The coordinate "gpu" is added where there are several.
calib::Row gpu_row(const std::string& quantity, std::vector<std::pair<std::string, double>> at,
                   calib::Unit unit, const GpuFacts& gpu, const Ceiling& ceiling);

/// bytes / seconds, and the like, as a sample.
calib::Sample sample_of(double work, const Timed& timed, bool is_verified);

}  // namespace tidegate::cuda
