#include "sim/offload/moves.hpp"

#include "sim/offload/recompute.hpp"
#include "sim/offload/replay.hpp"
#include "tests/catch.hpp"
#include "tests/sim/offload/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using What = Move::What;

namespace {

void recompute(const TensorTrace& trace, std::vector<Move>& moves, std::size_t tensor) {
  moves[tensor].what = What::recompute;
  Recomputation(trace).settle(moves);
}

}  // namespace

TEST_CASE("kept tensors make stairs up to the turn and down again", "[offload]") {
  const TensorTrace trace = toy::stairs(3);
  CHECK(toy::gigabytes(trace, keep_all(trace)) == std::vector<double>{1, 2, 3, 3, 2, 1});
}

TEST_CASE("a tensor is away between the point that it leaves by and that of its fetch",
          "[offload]") {
  TensorTrace trace = toy::stairs(3);
  trace.standing = 10_GB;
  trace.transient[4] = 5_GB;
  std::vector<Move> moves = keep_all(trace);
  offload(trace, moves[0], Move::Where::host);
  moves[0].out_by = 1;
  moves[0].in_at = 4;
  // A is away at points 2 and 3; point 4 has 5 GB of its own: 10 + A + B + 5.
  CHECK(toy::gigabytes(trace, moves) == std::vector<double>{11, 12, 12, 12, 17, 11});
  const Forecast f = forecast(trace, toy::rates(1, 1, 17, 1), moves, {});
  CHECK(f.gpu_peak == 17_GB);
  CHECK(f.peak_point == 4);
  CHECK(f.host_peak == 1_GB);
  CHECK(f.fits);
  CHECK_FALSE(forecast(trace, toy::rates(1, 1, 17, 0.5), moves, {}).fits);
}

TEST_CASE("a run of recomputed tensors is made again at once, for the one needed first",
          "[offload]") {
  const TensorTrace trace = toy::layer({-1, 0.5, 0.25, 1});
  std::vector<Move> moves = keep_all(trace);
  recompute(trace, moves, 1);
  // B alone comes back for its own backward, point 6.
  CHECK(moves[1].in_before == 6);
  recompute(trace, moves, 2);
  // C is made from B, so both come back for C's backward, point 5: 0.5 + 0.25 s.
  CHECK(moves[1].in_before == 5);
  CHECK(moves[2].in_before == 5);
  CHECK(recompute_time(trace, moves) == 0.75_s);
  // Away: B at 2, 3, 4; C at 3, 4.
  CHECK(toy::gigabytes(trace, moves) == std::vector<double>{1, 2, 2, 2, 2, 3, 2, 1});
}

TEST_CASE("an offloaded source is back when its run is made again", "[offload]") {
  const TensorTrace trace = toy::layer({-1, 0.5, 0.25, 1});
  std::vector<Move> moves = keep_all(trace);
  offload(trace, moves[0], Move::Where::host);
  recompute(trace, moves, 2);
  CHECK(moves[0].in_before == 7);  // C is made from B, which is kept
  recompute(trace, moves, 1);
  CHECK(moves[0].in_before == 5);  // now from A
}

TEST_CASE("the first tensors of a layer have nothing to be made from", "[offload]") {
  TensorTrace trace = toy::layer({0.5, 0.5});
  CHECK_FALSE(Recomputation(trace).is_candidate(0));
  CHECK(Recomputation(trace).is_candidate(1));
  trace.operators[1].layer = 1;
  CHECK_FALSE(Recomputation(trace).is_candidate(1));
}

TEST_CASE("running again counts with the transient memory of the forward", "[offload]") {
  TensorTrace trace = toy::layer({-1, 0.5});
  trace.transient[1] = 4_GB;  // forward of the operator that makes B
  std::vector<Move> moves = keep_all(trace);
  recompute(trace, moves, 1);
  // B is made again at point 2: A + B + 4.
  CHECK(toy::gigabytes(trace, moves) == std::vector<double>{1, 6, 6, 1});
}

TEST_CASE("a fetch that comes too late makes compute wait", "[offload]") {
  const TensorTrace trace = toy::stairs(3);
  std::vector<Move> moves = keep_all(trace);
  offload(trace, moves[0], Move::Where::host);
  // 0.4 GB/s: A leaves 1 … 3.5 s, during point 3. Its fetch, asked for at point 5 (5 s), takes
  // until 7.5 s.
  CHECK(replay(trace, toy::rates(0.4, 1, 9, 9), moves) == 2.5_s);
  CHECK(moves[0].out_by == 3);
  // Asked for at point 4 (4 s) it is there at 6.5 s.
  moves[0].in_at = 4;
  CHECK(replay(trace, toy::rates(0.4, 1, 9, 9), moves) == 1.5_s);
  // Before it has left at 3.5 s it cannot be fetched: 6 s.
  moves[0].in_at = 3;
  CHECK(replay(trace, toy::rates(0.4, 1, 9, 9), moves) == 1_s);
}

TEST_CASE("latency comes before the first byte of each transfer", "[offload]") {
  const TensorTrace trace = toy::stairs(3);
  std::vector<Move> moves = keep_all(trace);
  offload(trace, moves[0], Move::Where::host);
  Rates rates = toy::rates(1, 1, 9, 9);
  rates.latency_host = 0.5_s;
  CHECK(replay(trace, rates, moves) == 1.5_s);
  CHECK(moves[0].out_by == 2);  // 1 + 0.5 + 1 s
}

TEST_CASE("a trace that contradicts itself is a bug", "[offload]") {
  TensorTrace trace = toy::stairs(2);
  trace.tensors[0].last = 2;
  CHECK_THROWS_WITH(check(trace), Containing("operators of the trace"));
  trace = toy::stairs(2);
  trace.transient.pop_back();
  CHECK_THROWS_WITH(check(trace), Containing("one transient per point"));
}
