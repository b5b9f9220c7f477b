#include <cstdlib>
#include <filesystem>

#include <fmt/core.h>

#include "calib/rig/readings.hpp"
#include "calib/rig/system_text.hpp"

namespace tidegate::rig {
namespace {

std::string trimmed(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// A controller of NVMe is the device of its namespace; the PCI function is the controller's.
void find_link(const std::string& folder, DeviceFacts& facts) {
  for (const char* place : {"/device/device", "/device"}) {
    const std::string at = folder + place;
    const std::string speed = detail::line_of(at + "/current_link_speed");
    const std::int64_t lanes = detail::number_of(at + "/current_link_width", 0);
    facts.link = pcie_rate(speed, lanes);
    if (facts.link <= BytesPerSecond(0)) continue;
    facts.link_text = fmt::format("PCIe {} GT/s x{}", detail::words_of(speed)[0], lanes);
    return;
  }
}

}  // namespace

BytesPerSecond pcie_rate(const std::string& speed, std::int64_t lanes) {
  const auto words = detail::words_of(speed);
  if (words.size() < 2 || words[1] != "GT/s" || lanes <= 0) return BytesPerSecond(0);
  const double transfers = 1e9 * std::strtod(words[0].c_str(), nullptr);
  const double encoding = transfers < 8e9 ? 8.0 / 10 : 128.0 / 130;
  return BytesPerSecond(transfers * encoding / 8 * static_cast<double>(lanes));
}

DeviceFacts device_facts(const std::string& device, const std::string& system) {
  DeviceFacts facts;
  facts.name = device;
  if (device.empty()) return facts;
  const std::string folder = system + "/block/" + device;
  const std::string queue = folder + "/queue/";
  facts.model = trimmed(detail::line_of(folder + "/device/model"));
  facts.scheduler = detail::chosen_of(detail::line_of(queue + "scheduler"));
  facts.write_cache = detail::line_of(queue + "write_cache");
  facts.requests = detail::number_of(queue + "nr_requests", -1);
  const std::int64_t largest = detail::number_of(queue + "max_sectors_kb", -1);
  facts.largest_request = largest < 0 ? -1 : 1024 * largest;
  facts.is_rotational = detail::number_of(queue + "rotational", 0) == 1;
  find_link(folder, facts);
  return facts;
}

}  // namespace tidegate::rig
