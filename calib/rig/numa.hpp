#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sched.h>

/// Where threads run and where memory lies, by NUMA nodes.
namespace tidegate::rig {

struct NumaNode {
  std::int32_t id = 0;
  std::vector<std::int32_t> cpus;  ///< that this process may use; none of a node of memory alone
};
/// Nodes that have memory, by id. `system`: where sysfs is mounted. Empty where the kernel names
/// none.
std::vector<NumaNode> numa_nodes(const std::string& system = "/sys");

/// "0-3,8" as numbers; what is not understood ends the list.
std::vector<std::int32_t> cpu_list(const std::string& text);

/// The calling thread runs on this CPU until the object goes. Throws MachineError.
class OnCpu {
 public:
  explicit OnCpu(std::int32_t cpu);
  ~OnCpu();
  OnCpu(const OnCpu&) = delete;
  OnCpu& operator=(const OnCpu&) = delete;

 private:
  cpu_set_t before_;
};

/// Memory that the calling thread touches first lies on this node until the object goes. Throws
/// MachineError.
class MemoryOn {
 public:
  explicit MemoryOn(std::int32_t node);
  ~MemoryOn();
  MemoryOn(const MemoryOn&) = delete;
  MemoryOn& operator=(const MemoryOn&) = delete;
};

/// The node that the page of `address` lies on; -1 where the kernel does not say.
std::int32_t node_of(const void* address);

}  // namespace tidegate::rig
