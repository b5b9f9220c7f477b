#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/base/error.hpp"

/// What a training engine wrote about its own speed and memory.
///
/// Read are (formats and their sources: docs/logs.md)
///   DeepSpeed    wall_clock_breakdown ("time (ms) | fwd: … | bwd: … | step: …", names of all
///                versions), SamplesPerSec lines, see_memory_usage, printed settings; of its
///                pipeline engine "iter time (s)"
///   Megatron     "elapsed time per iteration (ms)", "time (ms)" of its timers, memory, settings
///   Trainer      train_samples_per_second of the summary, the settings printed at its start
/// Every other line is passed over.
namespace tidegate {

struct Logged {
  std::int32_t rank = 0;
  int line = 0;  ///< counts from 1
  double value = 0;
};
using LoggedSeries = std::map<std::string, std::vector<Logged>>;

/// A setting that the engine printed. Those of a run: global_batch, micro_batch, accumulation,
/// gpus, sequence, tensor_parallel, pipeline_parallel, zero_stage, parameters.
struct LoggedSetting {
  std::int64_t value = 0;
  Where where;
};

struct TrainingLog {
  std::string file;
  std::vector<std::string> writers;  ///< "DeepSpeed", …: in the order in which they appear
  /// In log order, SI units and bytes:
  ///   forward, backward, update, iteration   of one iteration, in seconds
  ///   micro_steps                            per iteration
  ///   samples_per_second, tflops_per_gpu
  ///   gpu_allocated, gpu_reserved            peaks since the last reset
  ///   host_used                              of the whole machine, at that moment
  LoggedSeries series;
  LoggedSeries timers;  ///< all others, by the engine's own names, in seconds, per iteration
  std::map<std::string, LoggedSetting> settings;
  std::int64_t lines = 0;
  std::int64_t skipped_updates = 0;  ///< that the loss scaler left out
  bool is_on_cpu = false;            ///< DeepSpeed without a GPU: its memory is the process's
  bool is_run_average = false;       ///< samples_per_second is one mean over the whole run
  std::vector<Problem> damaged;      ///< numbers that could not be read, left out
  bool is_cut = false;               ///< the last line has no end and was left out
  bool has_timings() const;
};

/// Reads to the end. Throws InputError when the text is compressed, when nothing in it tells a time
/// (with what to switch on), or when every timing line is damaged (with places).
TrainingLog read_log(std::istream& text, const std::string& name);
TrainingLog load_log(const std::string& path);

}  // namespace tidegate
