#include "calib/bench/ceilings.hpp"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <vector>

#include <fmt/core.h>

#include "calib/kernels/slices.hpp"

namespace tidegate::calib {
namespace {

// Little-endian field of one SMBIOS structure; 0 where the structure is too short for it.
std::uint32_t field(std::span<const std::byte> structure, std::size_t at, std::size_t bytes) {
  std::uint32_t value = 0;
  if (at + bytes > structure.size()) return 0;
  for (std::size_t i = bytes; i > 0; --i) {
    value = value << 8 | std::to_integer<std::uint32_t>(structure[at + i - 1]);
  }
  return value;
}

double memory_device_bandwidth(std::span<const std::byte> device) {
  constexpr std::uint32_t unknown = 0xffff;
  const std::uint32_t width = field(device, 0x0a, 2), size = field(device, 0x0c, 2);
  std::uint32_t speed = field(device, 0x15, 2);
  if (speed == unknown) speed = field(device, 0x54, 4);  // faster than 65 GT/s
  if (size == 0 || width == unknown) return 0;
  return static_cast<double>(width / 8) * 1e6 * static_cast<double>(speed);
}

std::vector<std::byte> firmware_table() {
  std::ifstream file("/sys/firmware/dmi/tables/DMI", std::ios::binary);
  std::vector<std::byte> table;
  for (std::istreambuf_iterator<char> at(file), end; at != end; ++at) {
    table.push_back(static_cast<std::byte>(*at));
  }
  return table;
}

}  // namespace

Clock highest_clock() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  double kilohertz = 0;
  if (!(file >> kilohertz) || kilohertz <= 0) return {};
  return {1e3 * kilohertz, fmt::format("{:.2f} GHz (cpuinfo_max_freq)", kilohertz * 1e-6)};
}

Ceiling flops_ceiling(const Clock& clock, int threads) {
  const auto width = cpu::slices().width;
  return {threads * 2.0 * static_cast<double>(width) * 2 * clock.hertz,
          fmt::format("{} threads x 2 units x {} lanes x 2 x {}", threads, width, clock.from)};
}

Ceiling product_ceiling(const Clock& clock, int threads, DType type) {
  if (type == DType::fp32) return flops_ceiling(clock, threads);
  return {threads * 1024.0 * clock.hertz,
          fmt::format("{} threads x 1024 (AMX) x {}", threads, clock.from)};
}

Ceiling memory_ceiling(const Setup& setup, const Clock& clock, int threads, Bytes footprint,
                       double bytes) {
  const Bytes cache = setup.host.last_level_cache;
  if (cache.value() > 0 && footprint >= 4.0 * cache) {
    const BytesPerSecond misses = threads * (96 * Bytes(64) / Seconds(60e-9));
    const BytesPerSecond dimms = dimm_bandwidth(firmware_table());
    if (dimms.value() > 0 && dimms < misses) {
      return {dimms.value() / bytes, "DIMMs of " + to_text(dimms)};
    }
    return {misses.value() / bytes,
            fmt::format("{} threads x 96 lines of 64 B in 60 ns (assumed)", threads)};
  }
  const auto vector = static_cast<double>(cpu::slices().width) * 4;
  return {threads * 5 * vector * clock.hertz / bytes,
          fmt::format("{} threads x 5 x {:.0f} B x {}", threads, vector, clock.from)};
}

BytesPerSecond dimm_bandwidth(std::span<const std::byte> table) {
  constexpr std::byte memory_device{17};
  double sum = 0;
  std::size_t at = 0;
  while (at + 4 <= table.size()) {
    const auto length = std::to_integer<std::size_t>(table[at + 1]);
    if (length < 4 || at + length > table.size()) break;
    if (table[at] == memory_device) sum += memory_device_bandwidth(table.subspan(at, length));
    // Texts follow the structure, each ended by a zero, all ended by another.
    std::size_t end = at + length;
    while (end + 1 < table.size() && (table[end] != std::byte{} || table[end + 1] != std::byte{})) {
      ++end;
    }
    at = end + 2;
  }
  return BytesPerSecond(sum);
}

}  // namespace tidegate::calib
