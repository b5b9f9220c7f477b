#include "calib/cuda/shim/nvml.hpp"

#include <array>
#include <utility>

#include <fmt/core.h>

namespace tidegate::cuda {
namespace {

constexpr int success = 0;
constexpr int sm_clock = 1;  // NVML_CLOCK_SM

constexpr std::array<std::pair<ClockReason, const char*>, 9> reason_names{
    {{idle, "idle"},
     {application_setting, "application clocks"},
     {power_cap, "power cap"},
     {hardware_slowdown, "hardware slowdown"},
     {sync_boost, "sync boost"},
     {thermal_slowdown, "thermal slowdown"},
     {hardware_thermal_slowdown, "hardware thermal slowdown"},
     {power_brake, "power brake"},
     {display_setting, "display clocks"}}};

}  // namespace

std::string reasons_text(std::uint64_t reasons) {
  std::string text;
  for (const auto& [bit, name] : reason_names) {
    if ((reasons & bit) == 0) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text.empty() ? "none" : text;
}

Nvml::Nvml() : library_({"libnvidia-ml.so.1"}) {
  library_.find(call_.init, {"nvmlInit_v2"});
  library_.find(call_.shutdown, {"nvmlShutdown"});
  library_.find(call_.driver_version, {"nvmlSystemGetDriverVersion"});
  library_.find(call_.by_bus_id, {"nvmlDeviceGetHandleByPciBusId_v2"});
  library_.find(call_.clock, {"nvmlDeviceGetClockInfo"});
  library_.find(call_.largest_clock, {"nvmlDeviceGetMaxClockInfo"});
  library_.find(call_.reasons, {"nvmlDeviceGetCurrentClocksEventReasons",
                                "nvmlDeviceGetCurrentClocksThrottleReasons"});
  library_.find(call_.generation, {"nvmlDeviceGetMaxPcieLinkGeneration"});
  library_.find(call_.width, {"nvmlDeviceGetCurrPcieLinkWidth"});
  library_.find(call_.power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  library_.find_optional(call_.mig, "nvmlDeviceGetMigMode");
  why_absent_ = library_.why_absent();
  if (!why_absent_.empty()) return;
  if (const int code = call_.init(); code != success) {
    why_absent_ = fmt::format("nvmlInit failed with code {}", code);
  }
}

Nvml::~Nvml() {
  if (why_absent_.empty()) call_.shutdown();
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (!why_absent_.empty()) return "";
  return call_.driver_version(text.data(), text.size()) == success ? text.data() : "";
}

Nvml::Handle Nvml::device(const std::string& pci_bus_id) const {
  Handle handle = nullptr;
  if (!why_absent_.empty()) return nullptr;
  return call_.by_bus_id(pci_bus_id.c_str(), &handle) == success ? handle : nullptr;
}

std::optional<ClockReading> Nvml::clocks(Handle device) const {
  unsigned megahertz = 0;
  unsigned long long reasons = 0;
  if (device == nullptr || call_.clock(device, sm_clock, &megahertz) != success) return {};
  if (call_.reasons(device, &reasons) != success) reasons = 0;
  return ClockReading{1e6 * megahertz, reasons};
}

std::optional<double> Nvml::largest_sm_clock(Handle device) const {
  unsigned megahertz = 0;
  if (device == nullptr || call_.largest_clock(device, sm_clock, &megahertz) != success) return {};
  return 1e6 * megahertz;
}

std::optional<PcieLink> Nvml::link(Handle device) const {
  unsigned generation = 0, width = 0;
  if (device == nullptr || call_.generation(device, &generation) != success) return {};
  if (call_.width(device, &width) != success) return {};
  return PcieLink{static_cast<int>(generation), static_cast<int>(width)};
}

std::optional<double> Nvml::power_limit(Handle device) const {
  unsigned milliwatts = 0;
  if (device == nullptr || call_.power_limit(device, &milliwatts) != success) return {};
  return 1e-3 * milliwatts;
}

std::string Nvml::mig(Handle device) const {
  unsigned now = 0, pending = 0;
  if (device == nullptr || call_.mig == nullptr) return "not told";
  if (call_.mig(device, &now, &pending) != success) return "not told";
  return now == 1 ? "on" : "off";
}

}  // namespace tidegate::cuda
