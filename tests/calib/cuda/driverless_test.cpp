#include <cmath>
#include <set>
#include <string>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/facts.hpp"
#include "calib/cuda/shim/cufile.hpp"
#include "calib/cuda/shim/nvml.hpp"
#include "calib/cuda/shim/shared_library.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::cuda;

TEST_CASE("the table of GPU benchmarks names each once and says what it is", "[cuda]") {
  std::set<std::string_view> names;
  for (const calib::BenchEntry& entry : bench_table()) {
    INFO(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK(entry.name.starts_with("gpu_"));
    CHECK_FALSE(entry.help.empty());
  }
  CHECK(names.size() == 11);
}

TEST_CASE("without a GPU each benchmark says what is missing, and nothing throws", "[cuda]") {
  if (!gpu_facts().empty()) {
    WARN("this machine has a GPU: not tested");
    return;
  }
  const calib::Setup setup;
  for (const calib::BenchEntry& entry : bench_table()) {
    const std::string reason = entry.why_not(setup);
    INFO(entry.name << ": " << reason);
    const bool names_the_gpu = reason.starts_with("no GPU: ") && reason.size() > 8;
    CHECK((names_the_gpu || reason == "built without CUDA"));
  }
}

TEST_CASE("a library that is not there, or lacks a function, is no error", "[cuda]") {
  SharedLibrary absent({"libtidegate_nowhere.so.1", "libtidegate_nowhere.so.2"});
  int (*function)(int) = nullptr;
  absent.find(function, {"anything"});
  CHECK(function == nullptr);
  CHECK(absent.why_absent() == "libtidegate_nowhere.so.1 is not installed");

  SharedLibrary present({"libm.so.6"});
  double (*cosine)(double) = nullptr;
  present.find(cosine, {"tidegate_cosine", "cos"});
  REQUIRE(cosine != nullptr);
  CHECK(cosine(0) == 1);
  CHECK(present.is_usable());
  double (*missing)(double) = nullptr;
  present.find_optional(missing, "tidegate_cosine");
  CHECK(present.is_usable());
  present.find(missing, {"tidegate_cosine"});
  CHECK(missing == nullptr);
  CHECK(present.why_absent() == "libm.so.6 lacks tidegate_cosine");
}

TEST_CASE("NVML answers 'not told' about a GPU that it does not know", "[cuda]") {
  const Nvml nvml;
  const Nvml::Handle nobody = nvml.device("ffff:ff:1f.0");
  CHECK(nobody == nullptr);
  CHECK_FALSE(nvml.clocks(nobody));
  CHECK_FALSE(nvml.link(nobody));
  CHECK_FALSE(nvml.power_limit(nobody));
  CHECK(nvml.mig(nobody) == "not told");
  if (gpu_facts().empty()) CHECK_FALSE(nvml.why_absent().empty());
}

TEST_CASE("reasons of clocks are named bit by bit", "[cuda]") {
  CHECK(reasons_text(0) == "none");
  CHECK(reasons_text(0x4) == "power cap");
  CHECK(reasons_text(0x28) == "hardware slowdown, thermal slowdown");
}

TEST_CASE("the way of cuFile is only claimed where something can prove it", "[cuda]") {
  GdsDriver driver;
  CHECK(expected_way(driver) == GdsWay::compatibility);  // no module, no P2PDMA
  driver.may_use_p2pdma = true;
  CHECK(expected_way(driver) == GdsWay::not_told);
  driver.has_nvidia_fs = true;
  CHECK(expected_way(driver) == GdsWay::not_told);  // the module does not count
  driver.counts = true;
  CHECK(expected_way(driver) == GdsWay::direct);
}

TEST_CASE("nvidia-fs counters are read from the driver's text", "[cuda]") {
  const std::string text =
      "GDS Version: 1.7.2.10\n"
      "IO stats: Enabled, peer IO stats: Enabled\n"
      "Reads\t\t\t\t: n=20 ok=20 err=0 readMiB=512 io_state_err=0\n"
      "Writes\t\t\t\t: n=9 ok=9 err=0 writeMiB=256 io_state_err=0\n"
      "Ops\t\t\t\t: Read=0 Write=0\n";
  const auto counters = parse_nvidia_fs(text);
  REQUIRE(counters);
  CHECK(counters->read == 512);
  CHECK(counters->written == 256);

  std::string disabled = text;
  disabled.replace(disabled.find("Enabled"), 7, "Disabled");
  CHECK_FALSE(parse_nvidia_fs(disabled));
  CHECK_FALSE(parse_nvidia_fs(""));
  CHECK_FALSE(parse_nvidia_fs("Reads : n=1 readMiB=x\nWrites : writeMiB=1\n"));
}

TEST_CASE("cuFile says why it cannot be used", "[cuda]") {
  if (!gpu_facts().empty()) return;
  const CuFile library;
  CHECK_FALSE(library.why_absent().empty());
}

TEST_CASE("lists of CPUs are read as the kernel writes them", "[cuda]") {
  CHECK(parse_cpu_list("0-2,5\n") == std::vector<int>{0, 1, 2, 5});
  CHECK(parse_cpu_list("7") == std::vector<int>{7});
  CHECK(parse_cpu_list("").empty());
  CHECK(parse_cpu_list("3-1").empty());
  CHECK(parse_cpu_list("0,x").empty());
}
