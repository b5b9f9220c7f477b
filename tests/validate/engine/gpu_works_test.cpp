#include "validate/cuda/gpu_works.hpp"

#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "validate/cuda/cuda_devices.hpp"

using namespace tidegate;

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

double flops_run(const EagerAttention& e, Attention one) {
  one.batch = 1, one.heads = one.kv_heads = e.heads, one.backward = false;
  return static_cast<double>(e.runs) * flops_of(Kernel(one)).value();
}

}  // namespace

TEST_CASE("eager attention has the FLOPs of the kernel, in pieces whose scores have room",
          "[device]") {
  for (const bool is_backward : {false, true}) {
    for (const std::int64_t heads : {1, 2, 12, 16, 30, 32, 96}) {
      for (const std::int64_t tokens : {128, 1024, 4096, 8192}) {
        const Attention a{.batch = 2,
                          .heads = heads,
                          .kv_heads = heads,
                          .queries = tokens,
                          .keys = tokens,
                          .head_dim = 64,
                          .backward = is_backward};
        const EagerAttention e = eager(a);
        INFO(heads << " heads of " << tokens << (is_backward ? " backward" : ""));
        CHECK(2 * heads % e.heads == 0);
        CHECK((e.heads * tokens * tokens * 2 <= most_scores || e.heads == 1));
        // 2 · heads is even, so an even number of pieces exists.
        CHECK(flops_run(e, a) == Approx(flops_of(Kernel(a)).value()));
      }
    }
  }
}

TEST_CASE("backward of one head is rounded to whole runs", "[device]") {
  const Attention a{.queries = 64, .keys = 64, .head_dim = 16, .backward = true};
  CHECK(eager(a).runs == 3);  // 2.5
}

TEST_CASE("triads move an element-wise kernel's bytes, launch by launch", "[device]") {
  CHECK(triads_of({.bytes = Bytes(24)}) == std::vector<std::int64_t>{8});  // 2 elements
  CHECK(triads_of({.bytes = Bytes(2400), .launches = 2}) == std::vector<std::int64_t>{104, 104});
  CHECK(triads_of({.bytes = Bytes(3. * 12 * 16 * mib)}) ==
        std::vector<std::int64_t>(3, most_triad));
  CHECK(triads_of({.bytes = Bytes(0)}).empty());
}

TEST_CASE("room holds operands and results, and scores with their sums", "[device]") {
  // x 1024 x 256 and w 512 x 256 in 2 bytes, y 1024 x 512.
  const Room product = room_of(Gemm{.m = 1024, .n = 512, .k = 256});
  CHECK(product.read == 2 * (1024 * 256 + 512 * 256));
  CHECK(product.written == 2 * 1024 * 512);
  // Of each of two heads: q, k and v 128 x 64, scores 128 x 128, sums 128 x 64.
  const Room attention =
      room_of(Attention{.heads = 2, .kv_heads = 2, .queries = 128, .keys = 128, .head_dim = 64});
  CHECK(attention.read == 2 * 2 * 3 * 128 * 64);
  CHECK(attention.written == 2 * 2 * (128 * 128 + 128 * 64));
  const Room both = product.with(attention);
  CHECK(both.read == std::max(product.read, attention.read));
  CHECK(both.written == std::max(product.written, attention.written));
}

TEST_CASE("without a GPU there are no devices, and it is said why", "[device]") {
  try {
    const Devices devices = cuda_devices();
    CHECK_FALSE(devices.empty());
  } catch (const MachineError& error) {
    CHECK_THAT(error.what(), Containing("no GPU: "));
  }
}
