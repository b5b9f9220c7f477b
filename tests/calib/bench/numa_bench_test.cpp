#include <sched.h>

#include <map>
#include <set>
#include <utility>

#include "calib/bench/chain.hpp"
#include "calib/bench/numa.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;
using namespace tidegate::literals;

namespace {

std::int32_t first_cpu() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::int32_t cpu = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) ++cpu;
  return cpu;
}

/// Two nodes with CPUs and one of memory alone, all on whatever this machine has: which buffer was
/// asked for on which node is kept, and told for its addresses.
struct MadeUp {
  std::map<std::pair<const std::byte*, const std::byte*>, std::int32_t> ranges;
  std::multiset<std::int32_t> asked;
  std::int32_t off_by = 0;  // of the node that is told

  NumaPlaces places() {
    const std::int32_t cpu = first_cpu();
    return {.nodes = {{0, {cpu}}, {1, {cpu, cpu}}, {4, {}}},
            .memory =
                [this](std::int32_t node, std::size_t bytes, rig::HostBuffer::Pages pages) {
                  asked.insert(node);
                  rig::HostBuffer buffer(bytes, pages);
                  ranges[{buffer.data(), buffer.data() + bytes}] = node;
                  return buffer;
                },
            .node_of =
                [this](const void* address) {
                  for (const auto& [range, node] : ranges) {
                    if (address >= range.first && address < range.second) return node + off_by;
                  }
                  return -1;
                }};
  }
};

Setup small() {
  Setup setup;
  setup.host.memory_available = 512_MiB;
  setup.host.last_level_cache = 1_MiB;
  return setup;
}

}  // namespace

TEST_CASE("each node's memory is read from each node that has CPUs", "[bench]") {
  MadeUp machine;
  const auto bench = make_numa(small(), machine.places());
  const std::vector<Row> rows = bench->rows();
  std::set<std::string> ids;
  for (const Row& row : rows) ids.insert(row.id());
  CHECK(ids.size() == 12);  // 2 nodes with CPUs x 3 memories, rate and latency
  CHECK(ids.contains("numa.read/from=1/to=4"));
  CHECK(ids.contains("numa.latency/from=0/to=1"));
  CHECK_FALSE(ids.contains("numa.read/from=4/to=0"));
  bench->prepare();
  CHECK(machine.asked == std::multiset<std::int32_t>{0, 0, 1, 1, 4, 4});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO(rows[i].id());
    const Sample sample = bench->sample(i);
    CHECK(sample.is_verified);
    CHECK(sample.value > 0);
    if (rows[i].unit == Unit::seconds) CHECK(sample.value < 1e-4);  // a load, not a page fault
  }
  bench->finish();
}

TEST_CASE("memory that lies on another node than the one asked for is no measurement", "[bench]") {
  MadeUp machine;
  machine.off_by = 1;
  const auto bench = make_numa(small(), machine.places());
  bench->prepare();
  CHECK_THROWS_AS(bench->sample(0), MachineError);
  CHECK_THROWS_AS(bench->sample(1), MachineError);
  bench->finish();
}

TEST_CASE("a chain visits every line once and tells a walk that went astray", "[bench]") {
  std::vector<Line> lines(1000);
  link(lines);
  std::set<std::uint32_t> seen;
  std::uint32_t at = 0;
  for (int i = 0; i < 1000; ++i) {
    CHECK(lines[at].place == static_cast<std::uint32_t>(i));
    seen.insert(at);
    at = lines[at].next;
  }
  CHECK(at == 0);
  CHECK(seen.size() == 1000);
  CHECK(walk(lines, 7, Seconds(1e-6)).is_right);
  for (Line& line : lines) line.next = 5;  // for ever at line 5
  CHECK_FALSE(walk(lines, 7, Seconds(1e-6)).is_right);
}
