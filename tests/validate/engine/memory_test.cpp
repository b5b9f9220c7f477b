// Arenas: addresses, capacities, and gaps.
#include "validate/engine/memory.hpp"
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
