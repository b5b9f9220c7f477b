#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "calib/cuda/shim/shared_library.hpp"

/// NVML (libnvidia-ml.so.1, part of the driver): clocks, what holds them down, and the link. The
/// functions and bits are declared here after NVIDIA's NVML API reference; its header is not
/// needed.
namespace tidegate::cuda {

/// What NVML says of a GPU at one moment.
struct ClockReading {
  double sm = 0;              ///< Hz
  std::uint64_t reasons = 0;  ///< bits of ClockReason
};

/// Why clocks are as they are (nvmlClocksEventReasons).
enum ClockReason : std::uint64_t {
  idle = 0x1,
  application_setting = 0x2,
  power_cap = 0x4,
  hardware_slowdown = 0x8,
  sync_boost = 0x10,
  thermal_slowdown = 0x20,
  hardware_thermal_slowdown = 0x40,
  power_brake = 0x80,
  display_setting = 0x100
};
/// "power cap, thermal slowdown"; "none" without any bit that is known.
std::string reasons_text(std::uint64_t reasons);

struct PcieLink {
  int generation = 0, width = 0;  ///< the best that GPU and slot can do; the width as it is now
};

class Nvml {
 public:
  using Handle = void*;

  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// Empty when it can be asked.
  const std::string& why_absent() const { return why_absent_; }
  std::string driver_version() const;  ///< empty when not told
  /// nullptr when NVML does not know the GPU; every question below answers "not told" to it.
  Handle device(const std::string& pci_bus_id) const;
  std::optional<ClockReading> clocks(Handle device) const;
  std::optional<double> largest_sm_clock(Handle device) const;  ///< Hz
  std::optional<PcieLink> link(Handle device) const;
  std::optional<double> power_limit(Handle device) const;  ///< watts, enforced
  std::string mig(Handle device) const;                    ///< "on", "off", "not told"

 private:
  struct Functions {
    int (*init)() = nullptr;
    int (*shutdown)() = nullptr;
    int (*driver_version)(char*, unsigned) = nullptr;
    int (*by_bus_id)(const char*, Handle*) = nullptr;
    int (*clock)(Handle, int, unsigned*) = nullptr;
    int (*largest_clock)(Handle, int, unsigned*) = nullptr;
    int (*reasons)(Handle, unsigned long long*) = nullptr;
    int (*generation)(Handle, unsigned*) = nullptr;
    int (*width)(Handle, unsigned*) = nullptr;
    int (*power_limit)(Handle, unsigned*) = nullptr;
    int (*mig)(Handle, unsigned*, unsigned*) = nullptr;
  };
  SharedLibrary library_;
  Functions call_;
  std::string why_absent_;
};

}  // namespace tidegate::cuda
