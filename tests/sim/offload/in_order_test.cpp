#include "sim/offload/planners.hpp"

#include "tests/catch.hpp"
#include "tests/sim/offload/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using What = Move::What;
using Where = Move::Where;

TEST_CASE("swapping all lets every movable tensor leave and fetches one operator ahead",
          "[offload]") {
  const TensorTrace trace = toy::stairs(3);
  // At 1 GB/s: A leaves 1 … 2, B 2 … 3, C 3 … 4 s. C is needed at 3 s and back at 5 s: 2 s of
  // waiting. B, asked for at 3 s, comes before C has left: 3 … 4 s. A, asked for at 7 s when point
  // 4 starts, is there at 8 s, needed then.
  const MovePlan plan = plan_swap_all(trace, toy::rates(1, 1, 2, 9), {.ahead = Ahead::op});
  CHECK(toy::named(trace, plan.moves, What::offload) == "ABC");
  CHECK(plan.forecast.exposed == 2_s);
  CHECK_FALSE(plan.forecast.is_hidden());
  CHECK(plan.moves[0].out_by == 1);
  CHECK(plan.moves[0].in_at == 4);
  // A is away at 2 and 3, B nowhere (gone after 2, back at 3), C nowhere.
  CHECK(toy::gigabytes(trace, plan.moves) == std::vector<double>{1, 2, 2, 2, 2, 1});
  CHECK(plan.forecast.fits);
}

TEST_CASE("vDNN's wait at the end of a layer trades time for memory", "[offload]") {
  const TensorTrace trace = toy::stairs(3);
  // Each layer runs 1 s and waits 1 s for its tensor, until 6 s; C, asked for at 6 s, is back at
  // 7 s: 4 s of waiting. Nothing is there in forward but the tensor just made.
  const MovePlan plan = plan_swap_all(trace, toy::rates(1, 1, 2, 9),
                                      {.ahead = Ahead::op, .layer_end = LayerEnd::waits});
  CHECK(plan.forecast.exposed == 4_s);
  CHECK(toy::gigabytes(trace, plan.moves) == std::vector<double>{1, 1, 1, 2, 2, 1});
}

TEST_CASE("swapping all stops where host memory is full", "[offload]") {
  const TensorTrace trace = toy::stairs(3);
  const MovePlan plan = plan_swap_all(trace, toy::rates(1, 1, 2, 2.5));
  CHECK(toy::named(trace, plan.moves, What::offload) == "AB");
  CHECK(plan.forecast.host_peak == 2_GB);
}

TEST_CASE("a fetch a layer ahead begins with the backward of the layer that runs before",
          "[offload]") {
  // Layers of two operators: backward runs 5 4 | 3 2 | 1 0 at points 6 7 | 8 9 | 10 11.
  TensorTrace trace = toy::stairs(6);
  for (std::size_t i = 0; i < 6; ++i) trace.operators[i].layer = i / 2;
  const MovePlan plan = plan_swap_all(trace, toy::rates(9, 9, 9, 9));
  const auto fetch = [&](std::size_t i) { return plan.moves[i].in_at; };
  CHECK(fetch(0) == 8);  // layer 0 is prepared while layer 1 runs
  CHECK(fetch(1) == 8);
  CHECK(fetch(2) == 6);
  CHECK(fetch(3) == 6);
  CHECK(fetch(4) == 6);  // of the last layer: when backward begins
  CHECK(fetch(5) == 6);
}

TEST_CASE("FlashNeuron moves tensors in forward order until the rest fits", "[offload]") {
  const TensorTrace trace = toy::stairs(4);
  // 4 GB saved, 1 GB in use at any point. With 3.5 GB the rest may be 2.5 GB: A and B go.
  const MovePlan plan = plan_flash_neuron(trace, toy::rates(8, 2, 3.5, 0));
  CHECK(toy::named(trace, plan.moves, What::offload) == "AB");
  CHECK(plan.moves[0].where == Where::storage);
  // At 2 GB/s A leaves 1 … 1.5, B 2 … 2.5 s. B, needed first, has room from the turn on (C, D and B
  // are 3 GB), A from point 5 on: at point 4 it would be the fourth GB.
  CHECK(plan.moves[1].in_at == 4);
  CHECK(plan.moves[0].in_at == 5);
  CHECK(toy::gigabytes(trace, plan.moves) == std::vector<double>{1, 2, 2, 2, 3, 3, 2, 1});
  CHECK(plan.forecast.fits);
  CHECK(plan.forecast.is_hidden());
}

TEST_CASE("FlashNeuron passes over what may not move, and moves nothing where all fits",
          "[offload]") {
  TensorTrace trace = toy::stairs(4);
  CHECK(toy::named(trace, plan_flash_neuron(trace, toy::rates(8, 2, 4, 0)).moves, What::keep) ==
        "ABCD");
  trace.tensors[0].may_move = false;
  CHECK(toy::named(trace, plan_flash_neuron(trace, toy::rates(8, 2, 3.5, 0)).moves,
                   What::offload) == "BC");
}
