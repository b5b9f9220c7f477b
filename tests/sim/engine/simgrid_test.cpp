// Every task's end by the engine and by SimGrid: simgrid_test <load>. Exit code 1 when one differs
// by more than 1e-6 of its time.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "bench/measure.hpp"
#include "bench/simgrid_replay.hpp"
#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"

int main(int argc, char** argv) {
  using namespace tidegate;
  constexpr double tolerance = 1e-6;
  const bench::Load load = bench::parse_load(bench::words_of(argc, argv));
  const bench::PricedPlan priced = bench::priced_plan(load, bench::Memory::tracked);
  const Timeline ours = simulate(priced.plan, priced.demands, priced.resources);
  const bench::Replay theirs = bench::replay(load, bench::Style::on_demand, bench::Updates::lazy);
  double worst = 0;
  std::size_t where = 0;
  for (std::size_t t = 0; t < load.size(); ++t) {
    const double difference =
        std::abs(to_seconds(ours.end[t]).value() - theirs.end[t]) / theirs.end[t];
    if (!(difference <= worst)) worst = difference, where = t;
  }
  const bool agrees = worst <= tolerance;
  fmt::print("{} tasks, makespan {} s; worst relative difference {:.2e} at task {}: {}\n",
             load.size(), theirs.makespan, worst, where, agrees ? "agrees" : "DIFFERS");
  std::fflush(nullptr);
  std::_Exit(agrees ? 0 : 1);  // without SimGrid's tear-down
}
