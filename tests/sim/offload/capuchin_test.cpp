#include "sim/offload/planners.hpp"

#include "tests/catch.hpp"
#include "tests/sim/offload/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using What = Move::What;

TEST_CASE("Capuchin swaps by free time while the link hides it", "[offload]") {
  const TensorTrace trace = toy::layer({-1, 0.5, 0.25, 0.25});
  // At 1 GB/s free time is 4 s for A (interval 1 … 7 s), 2 s for B, 0 for C, -2 s for D.
  const MovePlan one = plan_capuchin(trace, toy::rates(1, 1, 3, 9));
  CHECK(toy::named(trace, one.moves, What::offload) == "A");
  // A is away at 2 … 5, B (2 … 3 s, 5 … 6 s) at 3, 4.
  const MovePlan two = plan_capuchin(trace, toy::rates(1, 1, 2, 9));
  CHECK(toy::named(trace, two.moves, What::offload) == "AB");
  CHECK(toy::gigabytes(trace, two.moves) == std::vector<double>{1, 2, 2, 2, 2, 2, 2, 1});
  CHECK(two.forecast.fits);
  CHECK(two.forecast.is_hidden());
  CHECK(two.forecast.recompute == 0_s);
}

TEST_CASE("Capuchin recomputes where no swap is hidden, most memory per second first",
          "[offload]") {
  const TensorTrace trace = toy::layer({-1, 0.5, 0.25, 0.25});
  // At 0.4 GB/s A would leave 1 … 3.5 s and return 4.5 … 7 s: no point without it. C saves 4 GB/s
  // of recomputation and is away at 3, 4; D as much, but nowhere; B 2 GB/s.
  const MovePlan plan = plan_capuchin(trace, toy::rates(0.4, 1, 3, 9));
  CHECK(toy::named(trace, plan.moves, What::offload).empty());
  CHECK(toy::named(trace, plan.moves, What::recompute) == "C");
  CHECK(plan.forecast.recompute == 0.25_s);
  CHECK(plan.forecast.fits);
  CHECK(plan.forecast.is_hidden());
}

TEST_CASE("Capuchin makes no hidden swap that misses the points above capacity", "[offload]") {
  // 0.3 GB/s out, 2 GB/s in, capacity 3, exceeded at points 3 and 4. A would leave 1 … 4.33 s and
  // return 6.5 … 7 s, away at point 5 only; B would be away nowhere.
  const TensorTrace trace = toy::layer({-1, -1, 0.25, -1});
  Rates rates = toy::rates(2, 1, 3, 9);
  rates.out_host = 0.3_GBps;
  const MovePlan plan = plan_capuchin(trace, rates);
  CHECK(toy::named(trace, plan.moves, What::offload).empty());
  CHECK(toy::named(trace, plan.moves, What::recompute) == "C");
}

TEST_CASE("Capuchin brings a swapped source back early, and leaves it where it cannot",
          "[offload]") {
  // One layer of six, 1 … 6, 6 … 1 GB; only B can be made again. At 0.6 GB/s a copy takes 1.667 s.
  // Free time: A 10 - 3.333, B 8 - 3.333 … D 4 - 3.333 s. Capacity 5: A alone would do.
  const TensorTrace trace = toy::layer({-1, 0.5, -1, -1, -1, -1});
  const MovePlan one = plan_capuchin(trace, toy::rates(0.6, 1, 5, 9));
  CHECK(toy::named(trace, one.moves, What::offload) == "A");
  // Host memory for A only, capacity 4: B is made again at point 10 (10 s), from A, which therefore
  // is fetched 8.333 … 10 s and not 9.333 … 11 s. A is away at 3 … 7, B at 2 … 9.
  const MovePlan two = plan_capuchin(trace, toy::rates(0.6, 1, 4, 1));
  CHECK(toy::named(trace, two.moves, What::offload) == "A");
  CHECK(toy::named(trace, two.moves, What::recompute) == "B");
  CHECK(two.moves[0].in_before == 10);
  CHECK(two.moves[0].in_at == 8);
  CHECK(toy::gigabytes(trace, two.moves) ==
        std::vector<double>{1, 2, 2, 2, 3, 4, 4, 3, 3, 2, 2, 1});
  CHECK(two.forecast.fits);
}

TEST_CASE("Capuchin's last resort are swaps that make compute wait", "[offload]") {
  // Nothing can be made again, 0.4 GB/s, capacity 2 of 3 GB: free time is -1 s for A, less for B.
  // A leaves 1 … 3.5 s; asked for at 5 s, it is there at 7.5 s, 2.5 s late. It is still there at
  // points 2 and 3: the peak stays.
  const TensorTrace trace = toy::stairs(3);
  const MovePlan plan = plan_capuchin(trace, toy::rates(0.4, 1, 2, 9));
  CHECK(toy::named(trace, plan.moves, What::offload) == "A");
  CHECK(plan.forecast.exposed == 2.5_s);
  CHECK(plan.forecast.gpu_peak == 3_GB);
  CHECK_FALSE(plan.forecast.fits);
}
