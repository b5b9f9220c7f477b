#include <filesystem>
#include <fstream>
#include <thread>

#include "calib/rig/file.hpp"
#include "calib/rig/readings.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::rig;
namespace fs = std::filesystem;

namespace {

/// Two seconds of a machine of four cores with a drive.
Readings start() {
  return {.at = 1'000'000'000,
          .busy_cores = 10,
          .stolen = 1,
          .cores = 4,
          .own = 3,
          .throttled = 5,
          .device_read = 1000,
          .device_written = 2000};
}
Readings end() {
  return {.at = 3'000'000'000,
          .busy_cores = 13,
          .stolen = 1.8,
          .cores = 4,
          .own = 5,
          .throttled = 7,
          .device_read = 5000,
          .device_written = 2600};
}

}  // namespace

TEST_CASE("what others did is what the system counts less what we did", "[rig]") {
  const Foreign others = foreign(start(), end(), 3000, 200);
  // Busy 13 - 10 = 3 s, ours 5 - 3 = 2 s: 1 s of others in 2 s.
  CHECK(others.cores == Approx(0.5));
  // Ours are 2 s of the 8 s of four cores: 2 sqrt(2 x 0.75 x 0.01 s) + 2 x 0.01 s = 0.265 s.
  CHECK(others.counting == Approx(0.1325).epsilon(0.001));
  // 0.8 s of 2 s on 4 cores.
  CHECK(others.steal == Approx(0.1));
  // Read 4000 - 3000 = 1000, written 600 - 200 = 400: 1400 bytes in 2 s.
  CHECK(others.bytes_per_second.value() == Approx(700));
  CHECK(others.throttled == 2);
}

TEST_CASE("traffic that the device did not see takes nothing from the other direction", "[rig]") {
  // We read 9000 of which the device saw 4000 (a cache): no foreign reads, 600 foreign written.
  CHECK(foreign(start(), end(), 9000, 0).bytes_per_second.value() == Approx(300));
}

TEST_CASE("what is not counted is no foreign work", "[rig]") {
  Readings before = start(), after = end();
  before.device_read = before.device_written = after.device_read = after.device_written = -1;
  before.throttled = after.throttled = -1;
  CHECK_FALSE(foreign(before, after).bytes_per_second);
  CHECK(foreign(before, after).throttled == 0);
  // Clock ticks of 10 ms can make our own time exceed what the system was busy.
  after.own = 9;
  CHECK(foreign(before, after).cores == 0);
  CHECK(foreign(before, before).cores == 0);
}

TEST_CASE("of a short sample the ticks alone make a core", "[rig]") {
  // 20 ms, of which 8 ms ours, on two cores: 2 sqrt(0.008 x 0.8 x 0.01) + 0.02 = 0.036 s.
  const Readings before = {.at = 0, .cores = 2},
                 after = {.at = 20'000'000, .cores = 2, .own = 0.008};
  CHECK(foreign(before, after).counting == Approx(1.8).epsilon(0.001));
}

TEST_CASE("our own work is seen as ours", "[rig]") {
  const Readings before = read_system();
  double sum = 1;
  while (read_system().own - before.own < 0.1) {
    for (int i = 0; i < 1000000; ++i) sum = sum * 1.0000001 + 1e-9;
  }
  const Readings after = read_system();
  CHECK(sum > 1);
  CHECK(after.at > before.at);
  // The system counts in ticks of 10 ms, so 0.1 s of ours are at least 0.08 s there.
  CHECK(after.busy_cores - before.busy_cores >= 0.08);
  CHECK(after.device_read == -1);
}

TEST_CASE("a device that does not exist is not counted, one that does is", "[rig]") {
  CHECK(read_system("no_such_device").device_read == -1);
  const std::string device = file_system_of(TIDEGATE_BINARY_DIR).device;
  if (device.empty()) {
    WARN("SKIPPED: no block device behind the build tree");
    return;
  }
  CHECK(read_system(device).device_written > 0);
}

TEST_CASE("the link of a drive is lanes times rate times encoding", "[rig]") {
  // 16 GT/s · 128/130 / 8 bit · 4 lanes = 7.877 GB/s; 5 GT/s · 8/10 / 8 · 1 = 0.5 GB/s.
  CHECK(pcie_rate("16.0 GT/s PCIe", 4).value() == Approx(7.8769e9).epsilon(1e-4));
  CHECK(pcie_rate("5.0 GT/s PCIe", 1).value() == Approx(0.5e9));
  CHECK(pcie_rate("Unknown", 4).value() == 0);
  CHECK(pcie_rate("", 0).value() == 0);
}

TEST_CASE("a drive's facts are read from sysfs; what is missing stays unknown", "[rig]") {
  const fs::path root = fs::path(TIDEGATE_BINARY_DIR) / "rig_test_sysfs";
  const auto put = [&](const std::string& path, const std::string& text) {
    const fs::path file = root / "block/nvme0n1" / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  };
  put("device/model", "Vendor Drive 3.84TB   ");
  put("device/device/current_link_speed", "32.0 GT/s PCIe");
  put("device/device/current_link_width", "4");
  put("queue/scheduler", "[none] mq-deadline");
  put("queue/nr_requests", "1023");
  put("queue/max_sectors_kb", "128");
  put("queue/write_cache", "write back");
  const DeviceFacts facts = device_facts("nvme0n1", root);
  const DeviceFacts missing = device_facts("sdz", root);
  fs::remove_all(root);
  CHECK(facts.model == "Vendor Drive 3.84TB");
  CHECK(facts.scheduler == "none");
  CHECK(facts.requests == 1023);
  CHECK(facts.largest_request == 131072);
  CHECK(facts.link_text == "PCIe 32.0 GT/s x4");
  // 32 GT/s · 128/130 / 8 · 4 = 15.754 GB/s.
  CHECK(facts.link.value() == Approx(15.7538e9).epsilon(1e-4));
  CHECK(missing.link.value() == 0);
  CHECK(missing.requests == -1);
}

TEST_CASE("the host's facts name no one unless asked", "[rig]") {
  const HostFacts facts = host_facts(), again = host_facts(), named = host_facts(true);
  CHECK(facts.id == again.id);
  CHECK(facts.id.size() == 12);
  CHECK(facts.id.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(named.id != facts.id);
  CHECK(facts.logical_cores >= 1);
  CHECK(static_cast<unsigned>(facts.logical_cores) <= std::thread::hardware_concurrency());
  CHECK(facts.memory > facts.memory_available);
  CHECK_FALSE(facts.cpu.empty());
  CHECK_FALSE(facts.distribution.empty());
  CHECK_THAT(facts.kernel, Containing("Linux"));
}
