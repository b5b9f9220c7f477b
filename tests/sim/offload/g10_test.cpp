#include "sim/offload/planners.hpp"

#include "sim/offload/relief.hpp"
#include "tests/catch.hpp"
#include "tests/sim/offload/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using What = Move::What;
using Where = Move::Where;

TEST_CASE("relief is bytes times the time above the line, half written to half read", "[offload]") {
  // Line 2: above it from 2 to 6 s. At 1 GB/s A is half away 1.5 … 6.5 s, B 2.5 … 5.5, C 3.5 … 4.5.
  const TensorTrace trace = toy::stairs(4);
  std::vector<Move> moves = keep_all(trace);
  for (Move& move : moves) offload(trace, move, Where::storage);
  HiddenMoves hidden(trace, toy::rates(9, 1, 2, 0));
  const Relief relief(hidden, memory_curve(trace, keep_all(trace)), 2_GB);
  CHECK(relief.of(moves[0], 1_GB) == Approx(4e9));
  CHECK(relief.of(moves[1], 1_GB) == Approx(3e9));
  CHECK(relief.of(moves[2], 1_GB) == Approx(1e9));
  CHECK(relief.of(moves[3], 1_GB) == 0);
  // With A booked (1 … 2, 6 … 7 s), a second tensor like A is half away 2.5 … 5.5 s.
  REQUIRE(hidden.book(moves[0]));
  offload(trace, moves[0], Where::storage);
  CHECK(Relief(hidden, memory_curve(trace, keep_all(trace)), 2_GB).of(moves[0], 1_GB) ==
        Approx(3e9));
}

TEST_CASE("G10 takes the interval with the most bytes and time above the line", "[offload]") {
  const TensorTrace trace = toy::stairs(4);
  // 1 2 3 4 4 3 2 1 GB, line 3: above it from 3 to 5 s. At 1 GB/s, half written and half read, A is
  // away 1.5 … 6.5 s and B 2.5 … 5.5 s: 2 s above for both; A's interval is longer (6 s, 4 s).
  // A leaves 1 … 2 s and returns 6 … 7 s, so it is away at points 2 … 5. Point 5 has room for it.
  const G10Options exact = {.line = 1, .margin = 0};
  const MovePlan plan = plan_g10(trace, toy::rates(9, 1, 3, 0), exact);
  CHECK(toy::named(trace, plan.moves, What::offload) == "A");
  CHECK(plan.moves[0].where == Where::storage);
  CHECK(plan.moves[0].out_by == 1);
  CHECK(plan.moves[0].in_at == 5);
  CHECK(toy::gigabytes(trace, plan.moves) == std::vector<double>{1, 2, 2, 3, 3, 3, 2, 1});
  CHECK(plan.forecast.fits);
  CHECK(plan.forecast.is_hidden());

  // Line 2: above from 2 to 6 s. A (4 s above) comes before B (3 s) before C (1 s). B then leaves
  // 2 … 3 s and returns 5 … 6 s, beside A's 1 … 2 s and 6 … 7 s: away at 3, 4. No fetch has room
  // earlier.
  const MovePlan two = plan_g10(trace, toy::rates(9, 1, 2, 0), exact);
  CHECK(toy::named(trace, two.moves, What::offload) == "AB");
  CHECK(two.moves[0].in_at == 6);
  CHECK(two.moves[1].in_at == 5);
  CHECK(toy::gigabytes(trace, two.moves) == std::vector<double>{1, 2, 2, 2, 2, 2, 2, 1});
  CHECK(two.forecast.fits);
}

TEST_CASE("G10 counts time above the line, not the whole interval", "[offload]") {
  // B has 1.25 GB; line 3.5 GB, above it from 3 to 5 s. A relieves 1 GB * 2 s, B 1.25 GB * 2 s,
  // though A's 6 s are more bytes * time than B's 4 s. Without B 3 GB remain.
  TensorTrace trace = toy::stairs(4);
  trace.tensors[1].bytes = Bytes(1.25e9);
  const MovePlan plan = plan_g10(trace, toy::rates(20, 10, 3.5, 0), {.line = 1, .margin = 0});
  CHECK(toy::named(trace, plan.moves, What::offload) == "B");
}

TEST_CASE("G10 drops an interval that would leave no point without the tensor", "[offload]") {
  // At 0.4 GB/s A leaves 1 … 3.5 s, until point 3, and returns 4.5 … 7 s, from point 4 on.
  const TensorTrace trace = toy::stairs(4);
  const MovePlan plan = plan_g10(trace, toy::rates(9, 0.4, 3, 0), {.line = 1, .margin = 0});
  CHECK(toy::named(trace, plan.moves, What::keep) == "ABCD");
  CHECK_FALSE(plan.forecast.fits);
}

TEST_CASE("G10 gives an interval too short for the drives to the host", "[offload]") {
  const TensorTrace trace = toy::stairs(4);
  // Line 2, drives 0.5 GB/s: A (6 s) takes 2 + 2 s, 1 … 3 and 5 … 7 s, away at 3, 4. B (4 s) is too
  // short for that. On the link of 2 GB/s, of which A takes 0.5, B leaves 2 … 2.667 s and returns
  // 5.333 … 6 s: away at 3, 4. Points 2 and 5 keep 3 GB: it does not fit.
  const MovePlan plan = plan_g10(trace, toy::rates(2, 0.5, 2, 9), {.line = 1, .margin = 0});
  CHECK(toy::named(trace, plan.moves, What::offload) == "AB");
  CHECK(plan.moves[0].where == Where::storage);
  CHECK(plan.moves[1].where == Where::host);
  CHECK(plan.moves[1].out_by == 2);
  CHECK(plan.moves[1].in_at == 5);
  CHECK(toy::gigabytes(trace, plan.moves) == std::vector<double>{1, 2, 3, 2, 2, 3, 2, 1});
  CHECK(plan.forecast.gpu_peak == 3_GB);
  CHECK_FALSE(plan.forecast.fits);
  // Without room there, B stays.
  CHECK(toy::named(trace,
                   plan_g10(trace, toy::rates(2, 0.5, 2, 0.5), {.line = 1, .margin = 0}).moves,
                   What::offload) == "A");
  // A margin of 1.5 transfers (3 s) closes the drives for A as well: 6 < 2 + 2 + 3.
  const MovePlan wide = plan_g10(trace, toy::rates(2, 0.5, 2, 9), {.line = 1, .margin = 1.5});
  CHECK(wide.moves[0].where == Where::host);
}

TEST_CASE("G10 sends to the host what finds the drives taken, TERAIO waits for them", "[offload]") {
  // Operator 0 saves A (2 GB) and B (1 GB), operator 5 saves D (2 GB); line 2 GB. Both A and B must
  // go: A first, 1 … 3 s at 1 GB/s. B could begin at 3 s only, when it would be over on idle drives
  // (1 … 2 s); it would still be hidden, 3 … 4 and 8 … 9 s.
  TensorTrace trace = toy::stairs(6);
  trace.tensors = {{.name = "A", .bytes = 2_GB, .first = 0, .last = 0},
                   {.name = "B", .bytes = 1_GB, .first = 0, .last = 0},
                   {.name = "D", .bytes = 2_GB, .first = 5, .last = 5}};
  const auto where = [&](double host, const G10Options& options) {
    const MovePlan plan = plan_g10(trace, toy::rates(10, 1, 2, host), options);
    REQUIRE(toy::named(trace, plan.moves, What::offload) == "AB");
    CHECK(plan.moves[0].where == Where::storage);
    return plan.moves[1].where;
  };
  CHECK(where(9, {.line = 1}) == Where::host);
  CHECK(where(0.5, {.line = 1}) == Where::storage);
  CHECK(where(9, teraio_options) == Where::storage);
}

TEST_CASE("with unlimited bandwidth G10 moves only what is above the line", "[offload]") {
  // 6 GB at the turn, line 4 GB: two of the equal tensors, those that are away longest.
  const TensorTrace trace = toy::stairs(6);
  const MovePlan plan = plan_g10(trace, toy::rates(1e12, 1e12, 4, 0), {.line = 1});
  CHECK(toy::named(trace, plan.moves, What::offload) == "AB");
  CHECK(plan.forecast.fits);
}
