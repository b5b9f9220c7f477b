// Arenas: addresses, capacities, and gaps.
#include "validate/engine/memory.hpp"

#include <algorithm>
#include <vector>

#include "models/base/error.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

TEST_CASE("a gap is used again, and neighbours grow together", "[executor][memory]") {
  // Four pages in a row. The first two come back and make room for one of two pages.
  Gaps gaps(4 * 4096);
  const auto a = gaps.take(4096), b = gaps.take(1), c = gaps.take(4096), d = gaps.take(4000);
  REQUIRE((a == 0 && b == 4096 && c == 8192 && d == 12288));
  CHECK_FALSE(gaps.take(1));
  gaps.give_back(*b, 1);
  gaps.give_back(*a, 4096);
  CHECK_FALSE(gaps.take(3 * 4096));
  CHECK(gaps.take(2 * 4096) == 0);
  gaps.give_back(*d, 4000);
  gaps.give_back(*c, 4096);
  CHECK(gaps.take(2 * 4096) == 8192);
}

TEST_CASE("a pool holds its capacity and not a byte more", "[executor][memory]") {
  PlanBuilder builder;
  const PoolId pool = builder.pool("gpu0", {Tier::gpu, 0}, Bytes(10000));
  const OwnerId weights = builder.owner("weights"), rest = builder.owner("rest");
  const BufferId first = builder.buffer(pool, weights, Bytes(6000));
  const BufferId fits = builder.buffer(pool, rest, Bytes(4000));
  const BufferId over = builder.buffer(pool, rest, Bytes(4001));
  const TaskId task = builder.join({"grow", builder.lane("lane", 0), 0, 7}, {});
  const Plan plan = builder.finish(1, 1);
  Memories memories(plan);
  memories.allocate(first, task);
  memories.bytes_of(first)[5999] = std::byte{1};
  CHECK_THROWS_WITH(memories.allocate(over, task),
                    Containing("gpu0") && Containing("'grow 7'") && Containing("weights"));
  memories.allocate(fits, task);
  CHECK(memories.bytes_of(fits).data() >= memories.bytes_of(first).data() + 6000);
  CHECK(memories.peak(pool) == 10000);
  memories.free(first);
  memories.allocate(over, task);
  CHECK(memories.peak(pool) == 10000);  // 8001 now
}

TEST_CASE("a buffer that was let go keeps its memory and gives its pool back",
          "[executor][memory]") {
  PlanBuilder builder;
  const PoolId pool = builder.pool("host", {Tier::host, 0}, Bytes(6000));
  const OwnerId owner = builder.owner("saved");
  const BufferId read = builder.buffer(pool, owner, Bytes(6000));
  const BufferId next = builder.buffer(pool, owner, Bytes(6000));
  const TaskId task = builder.join({"grow", builder.lane("lane", 0)}, {});
  const Plan plan = builder.finish(1, 1);
  Memories memories(plan);
  memories.allocate(read, task);
  memories.bytes_of(read)[0] = std::byte{7};
  CHECK_THROWS_WITH(memories.allocate(next, task), Containing("is full"));
  memories.let_go(read);
  memories.allocate(next, task);
  memories.bytes_of(next)[0] = std::byte{8};
  CHECK(memories.bytes_of(read)[0] == std::byte{7});
  CHECK(memories.peak(pool) == 6000);
  memories.free(read);
  memories.free(next);
  CHECK(memories.bytes_of(read).empty());
}

TEST_CASE("what fits in a pool finds addresses, however it comes and goes", "[executor][memory]") {
  PlanBuilder builder;
  const OwnerId owner = builder.owner("all");
  const TaskId task = builder.join({"grow", builder.lane("lane", 0)}, {});
  SECTION("a hundred bytes in a hundred buffers lie on a hundred pages") {
    const PoolId pool = builder.pool("host", {Tier::host, 0}, Bytes(100));
    std::vector<BufferId> all;
    for (int i = 0; i < 100; ++i) all.push_back(builder.buffer(pool, owner, Bytes(1)));
    const Plan plan = builder.finish(1, 1);
    Memories memories(plan);
    for (const BufferId b : all) CHECK_NOTHROW(memories.allocate(b, task));
  }
  SECTION("half of a pool comes in buffers of 1, 2, 4 and 8 pages, into gaps that are shorter") {
    // Of 64 pages each round frees all but the last buffer of every stretch of twice the size, so
    // that 32 pages stay and no gap holds what comes next: pages 64 + 32 + 32 + 32 = 160.
    const PoolId pool = builder.pool("host", {Tier::host, 0}, Bytes(64 * 4096));
    std::vector<std::vector<BufferId>> rounds;
    for (int size = 1; size <= 8; size *= 2) {
      rounds.emplace_back();
      for (int i = 0; i < (size == 1 ? 64 : 32 / size); ++i)
        rounds.back().push_back(builder.buffer(pool, owner, Bytes(4096.0 * size)));
    }
    const Plan plan = builder.finish(1, 1);
    Memories memories(plan);
    std::vector<BufferId> there;
    const std::byte* base = nullptr;
    const auto page_of = [&](BufferId b) { return (memories.bytes_of(b).data() - base) / 4096; };
    std::ptrdiff_t highest = 0;
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      const std::ptrdiff_t stretch = std::ptrdiff_t{1} << r;
      std::vector<BufferId> stay;
      std::ptrdiff_t last = -1;
      std::ranges::reverse(there);
      for (const BufferId b : there) {
        const std::ptrdiff_t here = page_of(b) / stretch;
        here == last ? memories.free(b) : stay.push_back(b);
        last = here;
      }
      std::ranges::reverse(stay);
      there = stay;
      for (const BufferId b : rounds[r]) {
        CHECK_NOTHROW(memories.allocate(b, task));
        if (base == nullptr) base = memories.bytes_of(b).data();
        highest = std::max(highest, page_of(b) + stretch);
        there.push_back(b);
      }
    }
    CHECK(highest == 160);
  }
}
