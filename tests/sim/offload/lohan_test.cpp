#include "sim/offload/planners.hpp"

#include "tests/catch.hpp"
#include "tests/sim/offload/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using What = Move::What;
using Where = Move::Where;

TEST_CASE("LoHan swaps as many tensors as make the slowest resource fastest", "[offload]") {
  // A must be swapped; then B (2 s), C (1 s), D (0.5 s per GB). Compute is 8 s, each tensor takes
  // 4 s of the link each way.
  //   A: GPU 11.5, link 4   AB: 9.5, 8   ABC: 8.5, 12   ABCD: 8, 16
  const TensorTrace trace = toy::layer({-1, 2, 1, 0.5});
  const Rates rates = toy::rates(0.25, 0.5, 9, 1);
  const std::vector<LohanChoice> all = lohan_choices(trace, rates);
  REQUIRE(all.size() == 4);
  CHECK(all[0].time == 11.5_s);
  CHECK(all[1].time == 9.5_s);
  CHECK(all[2].time == 12_s);
  CHECK(all[3].time == 16_s);
  // Host memory holds A; B goes to the drives, 1/0.125 s to write and as much to read.
  CHECK(lohan_choices(trace, toy::rates(0.25, 0.125, 9, 1))[1].time == 16_s);
  const MovePlan plan = plan_lohan(trace, rates);
  CHECK(toy::named(trace, plan.moves, What::offload) == "AB");
  CHECK(plan.moves[0].where == Where::host);
  CHECK(plan.moves[1].where == Where::storage);
  CHECK(plan.forecast.recompute == 1.5_s);
  // C and D are made again from B at D's backward, point 4.
  CHECK(plan.moves[1].in_before == 4);
  CHECK(plan.moves[2].in_before == 4);
}

TEST_CASE("LoHan sees what else the step moves", "[offload]") {
  // 1 GB of other traffic each way is 4 s of the link: AB 9.5, 12; A alone 11.5, 8.
  const TensorTrace trace = toy::layer({-1, 2, 1, 0.5});
  const Rates rates = toy::rates(0.25, 0.5, 9, 9);
  const LohanOptions::Load other = {.link_out = 1_GB, .link_in = 1_GB};
  CHECK(toy::named(trace, plan_lohan(trace, rates, {.backward = other}).moves, What::offload) ==
        "A");
  // A CPU step of 20 s hides everything: the smallest amount is taken.
  CHECK(toy::named(trace, plan_lohan(trace, rates, {.backward = {.cpu = 20_s}}).moves,
                   What::offload) == "A");
}

TEST_CASE("LoHan may count the slowest of forward and of backward apart", "[offload]") {
  // Forward 4 s, backward 4 s and what runs again; 4 s of the link per tensor in each.
  //   A: 4 + 7.5 = 11.5   AB: 8 + 8 = 16   ABC: 12 + 12   ABCD: 16 + 16
  const TensorTrace trace = toy::layer({-1, 2, 1, 0.5});
  const LohanOptions apart = {.phases = LohanOptions::Phases::apart};
  const auto all = lohan_choices(trace, toy::rates(0.25, 0.5, 9, 9), apart);
  CHECK(all[0].time == 11.5_s);
  CHECK(all[1].time == 16_s);
  CHECK(all[3].time == 32_s);
  // With a CPU that takes 9 s in backward: 4 + 9, 8 + 9.
  CHECK(lohan_choices(trace, toy::rates(0.25, 0.5, 9, 9),
                      {.backward = {.cpu = 9_s}, .phases = LohanOptions::Phases::apart})[1]
            .time == 17_s);
}
