// What computes training on a GPU, tried without one: the kernels in a plain loop, the products by
// what the library is told of their operands.
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "calib/kernels/half.hpp"
#include "tests/catch.hpp"
#include "tests/validate/train/kernels/host_kernels.hpp"
#include "tests/validate/train/kernels/primitives.hpp"
#include "tests/validate/train/workloads.hpp"
#include "validate/train/training.hpp"

using namespace tidegate;
using namespace tidegate::train;

TEST_CASE("every kernel gives the bits of the CPU's loop, in whatever order its threads come",
          "[train][kernels]") {
  constexpr double same_bits = 0, in_fp32 = 1;
  const OnHost host;
  check_primitives(host.backend, same_bits, in_fp32);
  CHECK(host.device.launches > 0);
}

TEST_CASE("a GPU's kernels round to 16 bits and back as the CPU does", "[train][kernels]") {
  std::size_t wrong = 0;
  const auto check = [&](float value) {
    wrong += kernels::bf16_of(value) != cpu::to_bf16(value);
    wrong += kernels::fp16_of(value) != cpu::to_fp16(value);
  };
  const auto with_neighbours = [&](double value) {
    const auto nearest = static_cast<float>(value);
    check(nearest);
    check(std::nextafter(nearest, std::numeric_limits<float>::infinity()));
    check(std::nextafter(nearest, -std::numeric_limits<float>::infinity()));
  };
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float b = cpu::from_bf16(half), f = cpu::from_fp16(half);
    wrong +=
        std::bit_cast<std::uint32_t>(kernels::from_bf16(half)) != std::bit_cast<std::uint32_t>(b);
    wrong +=
        std::bit_cast<std::uint32_t>(kernels::from_fp16(half)) != std::bit_cast<std::uint32_t>(f);
    // Each number, and the middle of it and the next larger one.
    const auto next = static_cast<std::uint16_t>(bits + 1);
    with_neighbours(b);
    with_neighbours(f);
    with_neighbours((double{b} + double{cpu::from_bf16(next)}) / 2);
    with_neighbours((double{f} + double{cpu::from_fp16(next)}) / 2);
  }
  with_neighbours(65520);  // the middle of the largest fp16 number and what would be the next
  with_neighbours(std::numeric_limits<float>::max());
  with_neighbours(std::numeric_limits<float>::denorm_min());
  check(std::numeric_limits<float>::infinity());
  check(std::numeric_limits<float>::quiet_NaN());
  check(std::numeric_limits<float>::signaling_NaN());
  CHECK(wrong == 0);
}

TEST_CASE("a library that reads by columns is told of every layout of rows", "[train][kernels]") {
  // A is 2 x 3, B 3 x 4: A_ik = 10 i + k, B_kj = k + 2 j + 1, whole numbers, so that sums are
  // exact.
  for (const bool a_is_transposed : {false, true}) {
    for (const bool b_is_transposed : {false, true}) {
      for (const bool adds : {false, true}) {
        const cuda::Product p{.m = 2,
                              .n = 4,
                              .k = 3,
                              .a_is_transposed = a_is_transposed,
                              .b_is_transposed = b_is_transposed,
                              .adds = adds};
        Values a(6), b(12), c(8, 0.5F);
        for (std::size_t k = 0; k < 3; ++k) {
          for (std::size_t i = 0; i < 2; ++i)
            a[a_is_transposed ? k * 2 + i : i * 3 + k] = static_cast<float>(10 * i + k);
          for (std::size_t j = 0; j < 4; ++j)
            b[b_is_transposed ? j * 3 + k : k * 4 + j] = static_cast<float>(k + 2 * j + 1);
        }
        HostKernels().multiply(p, a.data(), b.data(), c.data());
        for (std::size_t i = 0; i < 2; ++i) {
          for (std::size_t j = 0; j < 4; ++j) {
            // k = 0, 1, 2: 10 i (2 j + 1) + (10 i + 1) (2 j + 2) + (10 i + 2) (2 j + 3)
            //            = 30 i (2 j + 2) + 3 (2 j) + 8
            const auto sum = static_cast<float>(30 * i * (2 * j + 2) + 6 * j + 8);
            CHECK(c[i * 4 + j] == sum + (adds ? 0.5F : 0.0F));
          }
        }
      }
    }
  }
}

TEST_CASE("training by the kernels is training by cores, bit for bit, where products are the same",
          "[train][kernels]") {
  const OnHost host(HostProducts::of_cores);
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16}) {
    for (tiny::Case& c : tiny::all()) {
      INFO(c.name << " in " << tidegate::name_of(type));
      c.workload.dtype = type;
      c.workload.accumulation = 2;
      TrainingOptions options{.steps = 5, .adam = {.rate = 1e-2F}};
      const Training cores = train::train(c.workload, options);
      options.backend = &host.backend;
      const Training kernels = train::train(c.workload, options);
      CHECK(kernels.losses == cores.losses);
      CHECK(kernels.state == cores.state);
    }
  }
}

#ifdef TIDEGATE_KERNEL_PTX
// What nvcc makes of the kernels with the options of the program. Whether a + b · c is rounded once
// or twice decides about the last bit.
TEST_CASE("nvcc leaves a GPU's Adam the operations of the CPU's, each rounded",
          "[train][kernels]") {
  std::ifstream file(TIDEGATE_KERNEL_PTX);
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  CHECK(text.find("fma.rn.f32") == std::string::npos);  // of no kernel
  const std::size_t begin = text.find("kernels4AdamE");
  REQUIRE(begin != std::string::npos);
  const std::string adam = text.substr(begin, text.find("\n}", begin) - begin);
  for (const char* operation : {"mul.rn.f32", "add.rn.f32", "sqrt.rn.f32", "div.rn.f32"})
    CHECK_THAT(adam, Containing(operation));
  for (const char* inexact : {"fma", "ftz", "approx"})
    CHECK(adam.find(inexact) == std::string::npos);
}
#endif
