#include "calib/bench/ceilings.hpp"

#include <cstdint>
#include <vector>

#include "calib/kernels/slices.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

void put(std::vector<std::byte>& structure, std::size_t at, std::uint32_t value,
         std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    structure[at + i] = static_cast<std::byte>(value >> 8 * i & 0xff);
  }
}

// A memory device of an SMBIOS table with two texts behind it.
std::vector<std::byte> memory_device(std::uint32_t width, std::uint32_t size, std::uint32_t speed,
                                     std::uint32_t extended = 0) {
  std::vector<std::byte> all(0x5c);
  put(all, 0, 17, 1);
  put(all, 1, 0x5c, 1);
  put(all, 0x08, width + 8, 2);  // total width, with error correction
  put(all, 0x0a, width, 2);
  put(all, 0x0c, size, 2);
  put(all, 0x15, speed, 2);
  put(all, 0x54, extended, 4);
  for (const char c : {'A', '1', '\0', 'B', '\0', '\0'}) all.push_back(static_cast<std::byte>(c));
  return all;
}

std::vector<std::byte> joined(const std::vector<std::vector<std::byte>>& parts) {
  std::vector<std::byte> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// A structure of another kind, without texts: four bytes and two zeros.
const std::vector<std::byte> other = {std::byte{127}, std::byte{4}, std::byte{},
                                      std::byte{},    std::byte{},  std::byte{}};

}  // namespace

TEST_CASE("DIMMs bound the memory's rate by width times transfers", "[ceilings]") {
  // Two of 64 bits at 4800 MT/s: 2·8·4.8e9 = 76.8 GB/s; an empty slot and other structures add
  // none.
  const auto dimm = memory_device(64, 16384, 4800), empty = memory_device(64, 0, 4800);
  CHECK(dimm_bandwidth(joined({other, dimm, empty, other, dimm, other})).value() == 76.8e9);
}

TEST_CASE("a memory device beyond 65 GT/s states its speed in the extended field", "[ceilings]") {
  CHECK(dimm_bandwidth(memory_device(32, 16384, 0xffff, 70000)).value() == 4 * 70e9);
}

TEST_CASE("a table that names no memory, or breaks off, bounds nothing", "[ceilings]") {
  CHECK(dimm_bandwidth({}).value() == 0);
  CHECK(dimm_bandwidth(other).value() == 0);
  CHECK(dimm_bandwidth(memory_device(64, 16384, 0)).value() == 0);         // speed unknown
  CHECK(dimm_bandwidth(memory_device(0xffff, 16384, 4800)).value() == 0);  // width unknown
  auto cut = memory_device(64, 16384, 4800);
  cut.resize(40);
  CHECK(dimm_bandwidth(cut).value() == 0);
}

TEST_CASE("the ceiling of multiply-adds grows with threads, vectors and clock", "[ceilings]") {
  // Per thread and cycle two units of `width` lanes, each a multiply and an add: 4·width.
  const double per_thread = 4.0 * static_cast<double>(cpu::slices().width) * 2e9;
  CHECK(flops_ceiling({2e9, "2 GHz"}, 3).value == Approx(3 * per_thread));
  CHECK_THAT(flops_ceiling({2e9, "2 GHz"}, 3).from, Containing("3 threads"));
}

TEST_CASE("tiles bound products of 16 bits, vectors those of fp32", "[ceilings]") {
  // 2 threads · 1024 · 2 GHz
  CHECK(product_ceiling({2e9, "2 GHz"}, 2, DType::bf16).value == Approx(4.096e12));
  CHECK(product_ceiling({2e9, "2 GHz"}, 2, DType::fp32).value ==
        flops_ceiling({2e9, "2 GHz"}, 2).value);
}

TEST_CASE("what cannot be in a cache is bound by the lines that a core waits for", "[ceilings]") {
  // 96·64 B in 60 ns are 102.4 GB/s per thread; 25.6e9 units of 8 bytes with two threads. DIMMs
  // that the firmware names can only lower it.
  Setup setup;
  setup.host.last_level_cache = Bytes(1e6);
  const double in_memory = memory_ceiling(setup, {5e9, "5 GHz"}, 2, Bytes(4e6), 8).value;
  const double in_cache = memory_ceiling(setup, {5e9, "5 GHz"}, 2, Bytes(3.9e6), 8).value;
  CHECK(in_memory > 0);
  CHECK(in_memory <= 25.6e9 * (1 + 1e-12));
  CHECK(in_memory < in_cache);
}

TEST_CASE("memory is bound by what the cores can load and store where nothing else is known",
          "[ceilings]") {
  // Five vectors of 4·width bytes per cycle at 1 GHz, on two threads, eight bytes per unit.
  const double expected = 2 * 5 * 4.0 * static_cast<double>(cpu::slices().width) * 1e9 / 8;
  CHECK(memory_ceiling({}, {1e9, "1 GHz"}, 2, Bytes(1e6), 8).value == Approx(expected));
}
