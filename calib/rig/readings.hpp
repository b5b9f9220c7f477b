#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/units.hpp"

/// What the operating system counts, read before and after a sample, to tell our own work from that
/// of others. What a system does not count is absent from it, never zero.
namespace tidegate::rig {

struct Readings {
  std::int64_t at = 0;          ///< steady_clock, ns
  double busy_cores = 0;        ///< seconds that all cores were busy, without steal (/proc/stat)
  double stolen = 0;            ///< seconds that the hypervisor took (steal)
  std::int32_t cores = 1;       ///< that the counters above are summed over
  double own = 0;               ///< seconds of CPU time of this process and its ended children
  std::int64_t throttled = -1;  ///< periods in which the cgroup's quota stopped us; -1: not counted
  std::int64_t device_read = -1, device_written = -1;  ///< bytes of the block device; -1: none
};
/// `device`: a block device as FileSystem names it, or empty.
Readings read_system(const std::string& device = "");

/// Bytes that this process has moved to and from block devices so far, all its threads together
/// (proc(5), /proc/PID/io: read_bytes, write_bytes); -1 where the system does not count them.
struct Traffic {
  std::int64_t read = -1, written = -1;
};
Traffic own_traffic();

/// What happened between two readings that was not ours.
struct Foreign {
  double cores = 0;                        ///< cores kept busy by others, on average
  double counting = 0;                     ///< cores that `cores` may be too high by, see below
  double steal = 0;                        ///< part of the cores' time that the hypervisor took
  std::optional<double> bytes_per_second;  ///< traffic of the device beyond ours, where counted
  std::int64_t throttled = 0;
};
/// own_read and own_written: bytes that we moved through the device meanwhile.
///
/// The system samples at ticks who keeps a core busy, and tells our own time exactly. Work of ours
/// that sleeps and wakes, such as I/O, is hit by more or fewer ticks than it lasts: of a tick h,
/// own time B on cores that are busy to a part u, the sum is off by sqrt(B (1 - u) h) (binomial),
/// and by two ticks where counters are cut to whole ones. `counting` is two such deviations and the
/// two ticks; in samples of 10 to 100 ms it is as much as a core.
Foreign foreign(const Readings& before, const Readings& after, std::int64_t own_read = 0,
                std::int64_t own_written = 0);

/// The host as provenance wants it: no names of people; host and serials only as hashes unless
/// asked.
struct HostFacts {
  std::string id;  ///< hash of machine-id and CPU, 12 hex digits; the host's name if asked
  std::string cpu, kernel, distribution, hypervisor, clock_source, huge_pages, governor;
  std::int32_t logical_cores = 1;  ///< that this process may use (affinity and cgroup quota)
  std::int32_t physical_cores = 1;
  std::int32_t numa_nodes = 1;
  Bytes memory, memory_available, locked_limit;  ///< RLIMIT_MEMLOCK
  Bytes last_level_cache;
  double quota_cores = 0;  ///< cgroup CPU quota in cores; 0: none
  bool has_avx2 = false, has_avx512 = false, has_bf16 = false, has_f16c = false;
};
HostFacts host_facts(bool identify = false);

/// A block device's facts that decide what can be measured.
struct DeviceFacts {
  std::string name, model, scheduler, write_cache;
  std::int64_t requests = -1, largest_request = -1;  ///< nr_requests; max_sectors in bytes
  bool is_rotational = false;
  BytesPerSecond link;    ///< of its PCI Express link as negotiated; 0: unknown
  std::string link_text;  ///< "PCIe 16.0 GT/s x4"
};
/// What is not there stays empty. `system`: where sysfs is mounted.
DeviceFacts device_facts(const std::string& device, const std::string& system = "/sys");

/// Payload that a link of PCI Express can carry at most: lanes · transfer rate · encoding (8/10 up
/// to 5 GT/s, 128/130 from 8 GT/s, PCI Express Base Specification), no packet headers taken off. 0
/// when `speed` ("16.0 GT/s PCIe", as sysfs writes it) is not understood.
BytesPerSecond pcie_rate(const std::string& speed, std::int64_t lanes);

}  // namespace tidegate::rig
