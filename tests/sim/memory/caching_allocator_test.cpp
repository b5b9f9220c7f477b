#include "sim/memory/caching_allocator.hpp"

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

constexpr std::int64_t KiB = 1024;
constexpr std::int64_t MiB = 1024 * KiB;
constexpr std::int64_t roomy = 1024 * MiB;

AllocatorOptions expandable() {
  AllocatorOptions options;
  options.expandable_segments = true;
  return options;
}

}  // namespace

TEST_CASE("requests take a whole number of 512 bytes", "[allocator]") {
  CachingAllocator gpu(roomy, {});
  gpu.allocate(1);
  CHECK(gpu.allocated() == 512);
  gpu.allocate(513);  // 1024
  CHECK(gpu.allocated() == 1536);
  CHECK(CachingAllocator::rounded(512) == 512);
}

TEST_CASE("requests up to 1 MiB share segments of 2 MiB", "[allocator]") {
  CachingAllocator gpu(roomy, {});
  gpu.allocate(1 * MiB);
  CHECK(gpu.reserved() == 2 * MiB);
  gpu.allocate(1 * MiB);
  CHECK(gpu.reserved() == 2 * MiB);  // the second half
  gpu.allocate(1);
  CHECK(gpu.reserved() == 4 * MiB);
  CHECK(gpu.segments() == 2);
}

TEST_CASE("requests above 1 MiB and below 10 MiB share segments of 20 MiB", "[allocator]") {
  CachingAllocator gpu(roomy, {});
  gpu.allocate(1 * MiB + 1);
  CHECK(gpu.reserved() == 20 * MiB);
  gpu.allocate(10 * MiB - 512);  // with 1 MiB and 512 B: 9 MiB are left
  gpu.allocate(6 * MiB);
  CHECK(gpu.reserved() == 20 * MiB);
  gpu.allocate(4 * MiB);  // of 3 that are left
  CHECK(gpu.reserved() == 40 * MiB);
  CHECK(gpu.segments() == 2);
}

TEST_CASE("from 10 MiB on a request has a segment of its own, in units of 2 MiB", "[allocator]") {
  CachingAllocator gpu(roomy, {});
  gpu.allocate(10 * MiB);
  CHECK(gpu.reserved() == 10 * MiB);
  gpu.allocate(10 * MiB + 1);
  CHECK(gpu.reserved() == 22 * MiB);  // 10 + 12
  CHECK(gpu.segments() == 2);
  CHECK(gpu.device_allocations() == 2);
}

TEST_CASE("what is left of a block is split off from 512 B or above 1 MiB on", "[allocator]") {
  CachingAllocator gpu(roomy, {});
  SECTION("small: 2 MiB less 512 B, so that 512 B more fit") {
    for (int i = 0; i < 4095; ++i) gpu.allocate(512);
    CHECK(gpu.allocated() == 4095 * 512);
    gpu.allocate(512);
    CHECK(gpu.reserved() == 2 * MiB);  // 4096 of 512 B
  }
  SECTION("large: 1 MiB goes with the request") {
    gpu.allocate(11 * MiB);  // a segment of 12
    CHECK(gpu.allocated() == 12 * MiB);
  }
  SECTION("large: 1 MiB and 512 B do not") {
    gpu.allocate(11 * MiB - 512);
    CHECK(gpu.allocated() == 11 * MiB - 512);
    CHECK(gpu.reserved() == 12 * MiB);
  }
}

TEST_CASE("the smallest free block that suffices is taken, of equal ones the lowest",
          "[allocator]") {
  CachingAllocator gpu(roomy, {});
  const auto big = *gpu.allocate(40 * MiB);
  const auto low = *gpu.allocate(30 * MiB);
  const auto high = *gpu.allocate(30 * MiB);
  const auto low_address = gpu.extent(low).address;
  const auto high_address = gpu.extent(high).address;
  const auto big_address = gpu.extent(big).address;
  for (const auto block : {big, high, low}) gpu.free(block);
  CHECK(gpu.extent(*gpu.allocate(30 * MiB)).address == std::min(low_address, high_address));
  CHECK(gpu.extent(*gpu.allocate(30 * MiB)).address == std::max(low_address, high_address));
  CHECK(gpu.extent(*gpu.allocate(30 * MiB)).address == big_address);
  CHECK(gpu.reserved() == 100 * MiB);
}

TEST_CASE("free blocks serve their own stream and their own pool", "[allocator]") {
  CachingAllocator gpu(roomy, {});
  gpu.free(*gpu.allocate(100 * MiB, 0));
  SECTION("not another stream") {
    gpu.allocate(100 * MiB, 1);
    CHECK(gpu.reserved() == 200 * MiB);
    gpu.allocate(100 * MiB, 0);
    CHECK(gpu.reserved() == 200 * MiB);
  }
  SECTION("not small requests") {
    gpu.allocate(1 * MiB, 0);
    CHECK(gpu.reserved() == 102 * MiB);
  }
}

TEST_CASE("freed neighbours of a segment merge, those of another segment do not", "[allocator]") {
  CachingAllocator gpu(roomy, {});
  gpu.free(*gpu.allocate(40 * MiB));
  const auto first = *gpu.allocate(12 * MiB);
  const auto middle = *gpu.allocate(14 * MiB);
  const auto last = *gpu.allocate(14 * MiB);
  CHECK(gpu.reserved() == 40 * MiB);
  gpu.free(first);
  gpu.free(last);
  gpu.free(*gpu.allocate(26 * MiB));  // 12 and 14 MiB are free, but apart
  CHECK(gpu.reserved() == 66 * MiB);
  gpu.free(middle);
  gpu.allocate(40 * MiB);
  CHECK(gpu.reserved() == 66 * MiB);
  gpu.allocate(27 * MiB);  // the 40 are in use, the 26 do not suffice: 28 more
  CHECK(gpu.reserved() == 94 * MiB);
}

TEST_CASE("a full device makes the allocator give back segments that nobody uses", "[allocator]") {
  CachingAllocator gpu(90 * MiB, {});
  gpu.free(*gpu.allocate(40 * MiB));
  REQUIRE(gpu.allocate(60 * MiB));  // 40 + 60 > 90: the 40 go first
  CHECK(gpu.reserved() == 60 * MiB);
  CHECK(gpu.retries() == 1);
  CHECK(gpu.device_allocations() == 2);
  CHECK(gpu.segments() == 1);
}

TEST_CASE("a segment that is partly in use stays, so that free bytes cannot be had",
          "[allocator]") {
  // 20 of 40 MiB stay in use. Then 40 more come and go: 20 in use, 60 free, 80 reserved of 90.
  // For 60 MiB at once the 40 are given back: 40 + 60 > 90, though 20 + 60 < 90.
  const auto last_request = [](CachingAllocator& gpu) {
    gpu.free(*gpu.allocate(40 * MiB));
    gpu.allocate(20 * MiB);
    gpu.free(*gpu.allocate(40 * MiB));
    return gpu.allocate(60 * MiB).has_value();
  };
  CachingAllocator fixed(90 * MiB, {});
  CHECK_FALSE(last_request(fixed));
  CHECK(fixed.allocated() == 20 * MiB);
  CHECK(fixed.reserved() == 40 * MiB);
  CHECK(fixed.retries() == 1);
  // One range: 0-20 in use, 20-60 mapped and free; it grows to 80.
  CachingAllocator growing(90 * MiB, expandable());
  CHECK(last_request(growing));
  CHECK(growing.allocated() == 80 * MiB);
  CHECK(growing.reserved() == 80 * MiB);
  CHECK(growing.retries() == 0);
}

TEST_CASE("expandable segments are mapped in pages of 2 and of 20 MiB", "[allocator]") {
  CachingAllocator gpu(roomy, expandable());
  gpu.allocate(512);
  CHECK(gpu.reserved() == 2 * MiB);
  const auto first = *gpu.allocate(50 * MiB);  // 3 pages, 10 MiB of them free
  CHECK(gpu.reserved() == 62 * MiB);
  gpu.allocate(25 * MiB);  // the 10 and a page more: 50-75, 75-80 free
  CHECK(gpu.reserved() == 82 * MiB);
  CHECK(gpu.allocated() == 75 * MiB + 512);  // nothing goes along with a request
  gpu.empty_cache();                         // no page is wholly free
  CHECK(gpu.reserved() == 82 * MiB);
  const auto address = gpu.extent(first).address;
  gpu.free(first);
  gpu.empty_cache();  // 0-40 are unmapped, 40-50 share a page with 50-75
  CHECK(gpu.reserved() == 42 * MiB);
  const auto again = *gpu.allocate(45 * MiB);  // 0-40 mapped again, with 5 of the 10 behind them
  CHECK(gpu.extent(again).address == address);
  CHECK(gpu.reserved() == 82 * MiB);
  CHECK(gpu.segments() == 2);  // a range for small, one for large blocks
}

TEST_CASE("a stream's expandable pages go to another stream when the device is full",
          "[allocator]") {
  CachingAllocator gpu(100 * MiB, expandable());
  gpu.free(*gpu.allocate(60 * MiB, 0));
  REQUIRE(gpu.allocate(60 * MiB, 1));
  CHECK(gpu.reserved() == 60 * MiB);
  CHECK(gpu.retries() == 1);
  CHECK_FALSE(gpu.allocate(60 * MiB, 0));
  CHECK(gpu.allocated() == 60 * MiB);
}

TEST_CASE("unmapped pages between blocks in use serve what fits there", "[allocator]") {
  // 0-20 in use, 20-40 unmapped, 40-60 in use. 20 MiB fit between; 40 need the end and 60 + 40
  // are too many.
  CachingAllocator gpu(90 * MiB, expandable());
  gpu.allocate(20 * MiB);
  const auto hole = *gpu.allocate(20 * MiB);
  gpu.allocate(20 * MiB);
  gpu.free(hole);
  CHECK_FALSE(gpu.allocate(60 * MiB));
  CHECK(gpu.reserved() == 40 * MiB);
  CHECK(gpu.allocate(20 * MiB));
  CHECK(gpu.reserved() == 60 * MiB);
}

TEST_CASE("blocks of max_split_size and more are never split", "[allocator]") {
  AllocatorOptions options;
  options.max_split_size = 100 * MiB;
  CachingAllocator gpu(roomy, options);
  gpu.free(*gpu.allocate(200 * MiB));
  SECTION("smaller requests do not get them") {
    gpu.allocate(60 * MiB);
    CHECK(gpu.reserved() == 260 * MiB);
  }
  SECTION("larger ones do when less than 20 MiB are wasted") {
    gpu.allocate(181 * MiB);
    CHECK(gpu.reserved() == 200 * MiB);
    CHECK(gpu.allocated() == 200 * MiB);
  }
  SECTION("and not when 20 are") {
    gpu.allocate(180 * MiB);
    CHECK(gpu.reserved() == 380 * MiB);
  }
}

TEST_CASE("a full device gets blocks of max_split_size back before all are flushed",
          "[allocator]") {
  AllocatorOptions options;
  options.max_split_size = 100 * MiB;
  SECTION("the smallest that suffices") {
    CachingAllocator gpu(550 * MiB, options);
    const auto a = *gpu.allocate(200 * MiB);
    const auto b = *gpu.allocate(300 * MiB);
    gpu.free(a);
    gpu.free(b);
    gpu.allocate(150 * MiB);  // 500 + 150 > 550: 200 go, 300 + 150 stay
    CHECK(gpu.reserved() == 450 * MiB);
    CHECK(gpu.retries() == 0);
  }
  SECTION("several when none suffices") {
    CachingAllocator gpu(550 * MiB, options);
    const auto a = *gpu.allocate(200 * MiB);
    const auto b = *gpu.allocate(300 * MiB);
    gpu.free(a);
    gpu.free(b);
    gpu.allocate(400 * MiB);
    CHECK(gpu.reserved() == 400 * MiB);
    CHECK(gpu.retries() == 0);
  }
}

TEST_CASE("a device without a bound serves any request", "[allocator]") {
  for (const auto& options : {AllocatorOptions{}, expandable()}) {
    CachingAllocator gpu(std::numeric_limits<std::int64_t>::max(), options);
    CHECK(gpu.allocate(4096 * roomy, 3));
    CHECK(gpu.allocate(4096 * roomy, 9));
  }
}
