#include "sim/plan/plan.hpp"

#include "models/base/error.hpp"

#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::literals;

TEST_CASE("equal works are kept once and different works apart", "[plan]") {
  PlanBuilder builder;
  const Work read = FileIo{.path = 0, .bytes = 1_GB};
  const Work write = FileIo{.direction = Direction::write, .path = 0, .bytes = 1_GB};
  const Work gemm = Compute{0, {Gemm{1, 2, 3}}};
  const Work other_gemm = Compute{0, {Gemm{1, 2, 4}}};
  CHECK(builder.work(read) == builder.work(read));
  CHECK(builder.work(read) != builder.work(write));
  CHECK(builder.work(gemm) == builder.work(gemm));
  CHECK(builder.work(gemm) != builder.work(other_gemm));
}

TEST_CASE("a repeated predecessor is kept once", "[plan]") {
  PlanBuilder builder;
  const LaneId lane = builder.lane("cpu", 0);
  const TaskId a = builder.join({"a", lane}, {});
  const TaskId twice[] = {a, a};
  const TaskId b = builder.join({"b", lane, 0, 3}, twice);
  const Plan plan = builder.finish(1, 1);
  CHECK(plan.after(b).size() == 1);
  CHECK(plan.after(a).empty());
  CHECK(plan.label(b) == "b 3");
}

TEST_CASE("a work's exact text reads back equal", "[plan]") {
  const std::vector<Work> works = {
      Delay{Seconds(0.1)},
      Compute{3,
              {Gemm{1, 2, 3, 4, DType::fp16}, Attention{1, 2, 2, 5, 5, 64, false, true},
               Elementwise{1_GB, 7}}},
      Copy{{Tier::gpu, 1}, {Tier::host, 0}, 3_GB, Pinning::pageable},
      FileIo{Direction::write, 1, {Tier::host, 0}, Bytes(12345), 2_MiB, 8, 4},
      AdamStep{2, 1000, DType::bf16},
      Cast{1, 5, DType::bf16, DType::fp32},
      Collective{CollectiveKind::all_gather, 2_GB, 8, 0, 4}};
  for (const Work& work : works) CHECK(decode_work(encode(work)) == work);
  CHECK_THROWS_AS(decode_work("delay"), InputError);
  CHECK_THROWS_AS(decode_work("fly 1"), InputError);
  CHECK_THROWS_AS(decode_work("delay 1 2"), InputError);
}
