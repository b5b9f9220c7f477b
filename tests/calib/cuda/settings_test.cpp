#include "calib/cuda/settings.hpp"

#include <algorithm>
#include <set>

#include "calib/cuda/facts.hpp"
#include "calib/cuda/timing.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::cuda;
using calib::Effort;

namespace {

bool is_unique(const std::vector<Gemm>& shapes) {
  for (auto it = shapes.begin(); it != shapes.end(); ++it) {
    if (std::find(std::next(it), shapes.end(), *it) != shapes.end()) return false;
  }
  return true;
}

GpuFacts gpu(int major, int multiprocessors, double clock) {
  GpuFacts facts;
  facts.major = major;
  facts.multiprocessors = multiprocessors;
  facts.sm_clock = clock;
  return facts;
}

}  // namespace

TEST_CASE("training shapes are the products of the networks' layers", "[cuda]") {
  // h 4096, feed-forward 11008, vocabulary 32000, 2048 tokens: seven different (n, k).
  const auto quick = training_shapes(Effort::quick, DType::bf16);
  CHECK(quick.size() == 7);
  CHECK(std::ranges::count(quick, Gemm{2048, 12288, 4096, 1, DType::bf16}) == 1);
  CHECK(std::ranges::count(quick, Gemm{2048, 4096, 11008, 1, DType::bf16}) == 1);
  CHECK(std::ranges::count(quick, Gemm{2048, 32000, 4096, 1, DType::bf16}) == 1);
  // Two networks, two token counts.
  CHECK(training_shapes(Effort::standard, DType::bf16).size() == 2 * 2 * 7);
  // The third has ffn = 4h, so five shapes; four token counts.
  const auto full = training_shapes(Effort::full, DType::bf16);
  CHECK(full.size() == 4 * (7 + 7 + 5));
  CHECK(is_unique(full));
  // Its vocabulary of 50257 is no multiple of 16.
  CHECK(training_shapes(Effort::full, DType::fp8).size() == 4 * (7 + 7 + 4));
}

TEST_CASE("the grid has cubes, and sizes beside the edge of a tile", "[cuda]") {
  CHECK(grid_shapes(Effort::quick, DType::bf16).size() == 5);         // 64 256 1024 4096 16384
  CHECK(grid_shapes(Effort::standard, DType::bf16).size() == 9 + 9);  // 64 … 16384; 3 x 3
  CHECK(grid_shapes(Effort::standard, DType::fp8).size() == 9 + 3);   // of the latter only +64
}

TEST_CASE("attention goes from 512 to 4096 or 8192 tokens", "[cuda]") {
  CHECK(attention_lengths(Effort::quick) == std::vector<std::int64_t>{1024, 4096});
  CHECK(attention_lengths(Effort::standard) == std::vector<std::int64_t>{512, 1024, 2048, 4096});
  CHECK(attention_lengths(Effort::full).back() == 8192);
}

TEST_CASE("copies go from 4 KiB to 1 GiB in whole pages", "[cuda]") {
  CHECK(copy_sizes(Effort::quick) ==
        std::vector<std::int64_t>{4096, 65536, 1 << 20, 16 << 20, 256 << 20, 1 << 30});
  const auto full = copy_sizes(Effort::full);
  CHECK(full.size() == 19 + 3);  // 2^12 … 2^30, three odd ones
  CHECK(std::ranges::is_sorted(full));
  CHECK(std::set<std::int64_t>(full.begin(), full.end()).size() == full.size());
  for (const std::int64_t size : full) CHECK(size % 4096 == 0);
}

TEST_CASE("sizes stop where memory does", "[cuda]") {
  constexpr double gib = 1073741824.0;
  CHECK(pin_sizes(Effort::quick, gib) == std::vector<std::int64_t>{1 << 20, 16 << 20, 256 << 20});
  CHECK(pin_sizes(Effort::quick, 0).empty());
  CHECK(traffic_sizes(Effort::quick, 3 * gib) ==
        std::vector<std::int64_t>{1 << 20, 16 << 20, 256 << 20, std::int64_t{3} << 30});
  CHECK(traffic_sizes(Effort::quick, 1000).empty());
}

TEST_CASE("buffers rotate until they are twice the cache", "[cuda]") {
  CHECK(rotation(50e6, 2, 10e6) == 10);  // 100 MB of 10 MB each
  CHECK(rotation(50e6, 2, 99e6) == 2);
  CHECK(rotation(50e6, 2, 200e6) == 1);
  CHECK(rotation(50e6, 2, 1e3) == 256);  // the most
}

TEST_CASE("a sample is cut into rounds that a stream can queue", "[cuda]") {
  const Cut one_round = cut_for(Seconds(0.1), Seconds(1e-3), 256);  // 100 operations
  CHECK(one_round.operations == 100);
  CHECK(one_round.rounds == 1);
  const Cut many = cut_for(Seconds(0.1), Seconds(1e-5), 256);  // 10000 = 39.06 x 256
  CHECK(many.operations == 256);
  CHECK(many.rounds == 39);
  const Cut slow = cut_for(Seconds(0.1), Seconds(3), 256);
  CHECK(slow.operations == 1);
  CHECK(slow.rounds == 1);
  const Cut unmeasurable = cut_for(Seconds(0.1), Seconds(0), 256);
  CHECK(unmeasurable.operations == 256);
  CHECK(unmeasurable.rounds == 1000);
}

TEST_CASE("a steady drift does not enter a ratio of alone, beside, beside, alone", "[cuda]") {
  CHECK(abba(Seconds(1), Seconds(2), Seconds(2), Seconds(1)) == 0.5);
  // Beside takes twice as long; each step the machine is 0.1 slower: 1, 2.2, 2.4, 1.3.
  CHECK(abba(Seconds(1), Seconds(2.2), Seconds(2.4), Seconds(1.3)) == Approx(0.5));
}

TEST_CASE("a slow clock spoils what runs on multiprocessors, heat also copies", "[cuda]") {
  constexpr double normal = 1980e6;
  CHECK(slowed({0.75 * normal, power_cap}, normal, Needs::multiprocessors).empty());
  const std::string capped = slowed({1400e6, power_cap}, normal, Needs::multiprocessors);
  CHECK(capped == "SM clock at 71 % of default: power cap");  // 1400/1980 = 0.707
  CHECK(slowed({1400e6, power_cap}, normal, Needs::link).empty());
  CHECK(slowed({1980e6, hardware_thermal_slowdown}, normal, Needs::link) ==
        "GPU slowed down: hardware thermal slowdown");
  CHECK(slowed({300e6, idle}, 0, Needs::multiprocessors).empty());  // no default known
}

TEST_CASE("bus bandwidth counts what each link carries", "[cuda]") {
  CHECK(all_reduce_factor(2) == 1);     // 2 · 1/2
  CHECK(all_reduce_factor(8) == 1.75);  // 2 · 7/8
  CHECK(gather_factor(4) == 0.75);      // 3/4
}

TEST_CASE("ceilings are the datasheets' peaks", "[cuda]") {
  // NVIDIA: A100 312 TFLOP/s bf16 with 108 SMs at 1.41 GHz, H100 SXM 989 with 132 at 1.83.
  CHECK(gemm_ceiling(gpu(8, 108, 1.41e9), DType::bf16).value == Approx(312e12).epsilon(0.001));
  CHECK(gemm_ceiling(gpu(9, 132, 1.83e9), DType::bf16).value == Approx(989e12).epsilon(0.001));
  CHECK(gemm_ceiling(gpu(9, 132, 1.83e9), DType::fp8).value == Approx(1979e12).epsilon(0.001));
  // 67 TFLOP/s fp32 at 1.98 GHz; A100 19.5.
  CHECK(gemm_ceiling(gpu(9, 132, 1.98e9), DType::fp32).value == Approx(67e12).epsilon(0.005));
  CHECK(gemm_ceiling(gpu(8, 108, 1.41e9), DType::fp32).value == Approx(19.5e12).epsilon(0.005));
  CHECK(gemm_ceiling(gpu(8, 108, 1.41e9), DType::fp8).value == 0);
  CHECK(gemm_ceiling(gpu(42, 1, 1e9), DType::bf16).value == 0);

  GpuFacts a100 = gpu(8, 108, 1.41e9);
  a100.bus_bits = 5120;
  a100.memory_clock = 1215e6;
  CHECK(memory_ceiling(a100).value == Approx(1555.2e9));  // 640 B x 1.215 GHz x 2
  a100.pcie_generation = 4;
  a100.pcie_width = 16;
  CHECK(pcie_ceiling(a100).value == Approx(31.508e9).epsilon(1e-4));  // 16 x 2 GB/s x 128/130
  CHECK(pcie_ceiling(a100).from == "PCIe 4.0 x16");
  a100.has_coherent_link = true;
  CHECK(pcie_ceiling(a100).value == 0);
}
