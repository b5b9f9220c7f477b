#include "calib/rig/numa.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "calib/rig/host_buffer.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::rig;
namespace fs = std::filesystem;
using Cpus = std::vector<std::int32_t>;

TEST_CASE("lists of CPUs are ranges and numbers", "[rig]") {
  CHECK(cpu_list("0-3,8") == Cpus{0, 1, 2, 3, 8});
  CHECK(cpu_list("5") == Cpus{5});
  CHECK(cpu_list("").empty());
  CHECK(cpu_list("0-1,x,7") == Cpus{0, 1});
}

TEST_CASE("nodes have the CPUs that this process may use; memory alone is a node too", "[rig]") {
  const fs::path system = fs::path(TIDEGATE_BINARY_DIR) / ("numa_test_" + std::to_string(getpid()));
  const auto write = [&system](const std::string& name, const std::string& text) {
    const fs::path path = system / "devices/system/node" / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  };
  write("has_memory", "0-1,4");
  write("node0/cpulist", "0");
  write("node1/cpulist", "900-901");  // no process of this machine may use those
  write("node4/cpulist", "");         // memory of a device
  const auto nodes = numa_nodes(system.string());
  fs::remove_all(system);
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0].id == 0);
  CHECK(nodes[1].cpus.empty());
  CHECK(nodes[2].id == 4);
  CHECK(nodes[2].cpus.empty());
  CHECK(numa_nodes("/nowhere").empty());
}

TEST_CASE("a thread stays on its CPU while it is held there, and is free afterwards", "[rig]") {
  cpu_set_t before;
  CPU_ZERO(&before);
  REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
  std::int32_t cpu = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(cpu), &before)) ++cpu;
  {
    const OnCpu held(cpu);
    CHECK(sched_getcpu() == cpu);
    cpu_set_t now;
    sched_getaffinity(0, sizeof(now), &now);
    CHECK(CPU_COUNT(&now) == 1);
  }
  cpu_set_t after;
  sched_getaffinity(0, sizeof(after), &after);
  CHECK(CPU_EQUAL(&before, &after));
  CHECK_THROWS_AS(OnCpu(CPU_SETSIZE - 1), MachineError);
}

TEST_CASE("memory lies on the node that was asked for", "[rig]") {
  const auto nodes = numa_nodes();
  if (nodes.empty()) {
    WARN("SKIPPED: the kernel names no NUMA nodes");
    return;
  }
  const std::int32_t last = nodes.back().id;
  const MemoryOn there(last);
  const HostBuffer buffer(std::size_t{1} << 20);
  const std::int32_t node = node_of(buffer.data() + 4096);
  CHECK((node == last || node == -1));
}
