#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calib/measure/protocol.hpp"
#include "calib/node/node.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/native/passes.hpp"

/// What this machine does now, as the executor uses it: a calibration of a quarter of a minute, of
/// just what the native cases need.
///
/// The device that computes is one core, since the executor's kernels are those of one thread;
/// Adam, casts and copies are one thread each (engine_bench.hpp). The memory of that device and of
/// the host are one: memory_bandwidth is what all cores together move, and an element-wise kernel
/// of one thread reaches a part of it (memory_efficiency). Drives are measured by calibration's
/// rows.
namespace tidegate {

/// Sections gpus, host and paths.<name> of a profile, without what no measurement tells.
using Rates = std::vector<calib::Section>;

/// A storage path of the profile of the native cases, and the folder that serves it.
struct NativePath {
  std::string name, folder;
};

/// The block device behind it; a file system without one stands for itself.
std::string device_of(const NativePath& path);

struct RateOptions {
  std::vector<NativePath> paths;  ///< those of one device are measured once
  std::uint64_t seed = 7;
  bool is_gated = true;  ///< false: samples beside other work count too
  std::function<void(const calib::ProgressNow&)> progress;
};
/// One pass. Throws InputError for folders that cannot be measured; rig::Interrupted on Ctrl-C.
calib::Measurements measure_rates(const RateOptions& options);

/// Whether every row has a value that may be used.
bool is_whole(const calib::Measurements& measurements);

/// A value is the median of the blocks of its row. Its uncertainty is the deviation of these
/// blocks; of fewer than five, which tell little, that of all rows of its kind (gate) together
/// where that is larger.
/// Throws MachineError that names what could not be measured, with the reason that was met most.
Rates rates_of(const calib::Measurements& measurements, const std::vector<NativePath>& paths,
               Spread spread = Spread::over_all);

/// The same values of a profile that `tidegate calib` wrote, as they stand there; the paths are all
/// its first one. Throws InputError unless it was measured on this host.
Rates rates_of_profile(const std::string& path, const std::vector<NativePath>& paths);

/// As a scenario takes them: "machine.host.adam_rate", "{value: …, source: …, uncertainty: …}".
std::vector<Override> overrides_of(const Rates& rates);

}  // namespace tidegate
