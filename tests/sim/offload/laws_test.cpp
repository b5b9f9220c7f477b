#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "sim/offload/planners.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using What = Move::What;
using Where = Move::Where;

namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1.0p-53;
  }
  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  std::mt19937_64 random_;
};

TensorTrace random_trace(Dice& dice) {
  TensorTrace trace;
  const std::size_t layers = 1 + dice.below(4);
  for (std::size_t l = 0; l < layers; ++l) {
    const std::size_t start = trace.operators.size();
    const std::size_t operators = 1 + dice.below(5);
    for (std::size_t o = 0; o < operators; ++o)
      trace.operators.push_back({.layer = l,
                                 .op = o,
                                 .forward = Seconds(dice.uniform(0, 2)),
                                 .backward = Seconds(dice.uniform(0, 4))});
    for (std::size_t k = dice.below(2 * operators); k > 0; --k) {
      const std::size_t first = dice.below(operators);
      const bool can = dice.below(3) > 0;
      trace.tensors.push_back({.name = {},
                               .bytes = Bytes(1e6 * static_cast<double>(1 + dice.below(1000))),
                               .first = start + first,
                               .last = start + first + dice.below(operators - first),
                               .may_move = dice.below(5) > 0,
                               .recompute = Seconds(can ? dice.uniform(0, 1) : -1)});
    }
  }
  trace.standing = Bytes(1e9);
  for (std::size_t p = 0; p < trace.points(); ++p)
    trace.transient.push_back(Bytes(1e6 * static_cast<double>(dice.below(200))));
  return trace;
}

Rates random_rates(Dice& dice, const TensorTrace& trace) {
  const Bytes peak = forecast(trace, {}, keep_all(trace), {}).gpu_peak;
  const double link = 1e8 * std::pow(10, dice.uniform(0, 2));
  return {.out_host = BytesPerSecond(link),
          .in_host = BytesPerSecond(link * dice.uniform(0.5, 2)),
          .out_storage = BytesPerSecond(link * dice.uniform(0.1, 1.5)),
          .in_storage = BytesPerSecond(link * dice.uniform(0.1, 1.5)),
          .latency_host = Seconds(dice.uniform(0, 0.01)),
          .latency_storage = Seconds(dice.uniform(0, 0.05)),
          .gpu_capacity = peak * dice.uniform(0.4, 1.05),
          .host_capacity = Bytes(dice.uniform(0, 3e9))};
}

using Planner = std::function<MovePlan(const TensorTrace&, const Rates&)>;

const std::vector<std::pair<std::string, Planner>> planners = {
    {"swap_all", [](const auto& t, const auto& r) { return plan_swap_all(t, r); }},
    {"vdnn",
     [](const auto& t, const auto& r) {
       return plan_swap_all(t, r, {.ahead = Ahead::op, .layer_end = LayerEnd::waits});
     }},
    {"flash_neuron", [](const auto& t, const auto& r) { return plan_flash_neuron(t, r); }},
    {"g10", [](const auto& t, const auto& r) { return plan_g10(t, r); }},
    {"teraio", [](const auto& t, const auto& r) { return plan_g10(t, r, teraio_options); }},
    {"capuchin", [](const auto& t, const auto& r) { return plan_capuchin(t, r); }},
    {"lohan", [](const auto& t, const auto& r) { return plan_lohan(t, r); }}};

void for_random_traces(const std::function<void(const TensorTrace&, const Rates&)>& law) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Dice dice(seed);
    const TensorTrace trace = random_trace(dice);
    const Rates rates = random_rates(dice, trace);
    INFO("seed " << seed);
    law(trace, rates);
  }
}

// The definition, tensor by tensor and point by point.
Bytes memory_at(const TensorTrace& trace, const std::vector<Move>& moves, std::size_t p) {
  Bytes sum, transient = trace.transient[p];
  for (const Move& m : moves) {
    const TensorTrace::Tensor& t = trace.tensors[m.tensor];
    const bool is_alive = p >= t.first && p <= 2 * trace.operators.size() - 1 - t.first;
    const bool is_away = m.what != What::keep && p > m.out_by && p < m.in_at;
    if (is_alive && !is_away) sum += t.bytes;
    if (m.what == What::recompute && m.in_at == p)
      transient = std::max(transient, trace.transient[t.first]);
  }
  return trace.standing + sum + transient;
}

// A transfer of `bytes` that may run from the start of point `from` to the start of `until`.
struct Window {
  std::size_t from, until;
  Bytes bytes;
};

// Transfers that share one rate can all be done in their windows if and only if no span of time
// has to hold more bytes than the rate moves in it.
void check_room(const std::vector<Window>& windows, const std::vector<Seconds>& axis,
                BytesPerSecond rate) {
  for (const Window& a : windows) {
    for (const Window& b : windows) {
      if (b.until < a.from) continue;
      Bytes inside;
      for (const Window& w : windows)
        if (w.from >= a.from && w.until <= b.until) inside += w.bytes;
      CHECK(inside.value() <= (rate * (axis[b.until] - axis[a.from])).value() * (1 + 1e-6) + 1);
    }
  }
}

}  // namespace

TEST_CASE("moves are sound and forecasts say what they do, under every planner", "[offload][law]") {
  for_random_traces([](const TensorTrace& trace, const Rates& rates) {
    for (const auto& [name, planner] : planners) {
      INFO(name);
      const MovePlan plan = planner(trace, rates);
      REQUIRE(plan.moves.size() == trace.tensors.size());
      Bytes host;
      for (std::size_t i = 0; i < plan.moves.size(); ++i) {
        const Move& m = plan.moves[i];
        const TensorTrace::Tensor& t = trace.tensors[i];
        CHECK(m.tensor == i);
        if (m.what == What::keep) continue;
        CHECK(t.may_move);
        CHECK(m.out_after == t.last);
        CHECK(m.out_by >= m.out_after);
        CHECK(m.in_at > m.out_after);
        CHECK(m.in_at <= m.in_before);
        CHECK(m.in_before <= trace.needed_again(t));
        if (m.what == What::recompute) CHECK(t.can_recompute());
        if (m.what == What::offload && m.where == Where::host) host += t.bytes;
      }
      Bytes peak;
      for (std::size_t p = 0; p < trace.points(); ++p) {
        const Bytes now = memory_at(trace, plan.moves, p);
        CHECK(now == memory_curve(trace, plan.moves)[p]);
        if (plan.forecast.fits) CHECK(now <= rates.gpu_capacity);
        peak = std::max(peak, now);
      }
      CHECK(plan.forecast.gpu_peak == peak);
      CHECK(plan.forecast.host_peak == host);
      CHECK(host <= rates.host_capacity);
    }
  });
}

TEST_CASE("planners that answer twice answer the same", "[offload][law]") {
  for_random_traces([](const TensorTrace& trace, const Rates& rates) {
    for (const auto& [name, planner] : planners) {
      INFO(name);
      const MovePlan a = planner(trace, rates), b = planner(trace, rates);
      for (std::size_t i = 0; i < a.moves.size(); ++i) {
        CHECK(a.moves[i].what == b.moves[i].what);
        CHECK(a.moves[i].out_by == b.moves[i].out_by);
        CHECK(a.moves[i].in_at == b.moves[i].in_at);
      }
      CHECK(a.forecast.exposed == b.forecast.exposed);
    }
  });
}

TEST_CASE("hidden transfers have room in their windows", "[offload][law]") {
  int moved = 0;
  for_random_traces([&](const TensorTrace& trace, const Rates& rates) {
    for (const auto& [name, planner] : planners) {
      if (name != "g10" && name != "teraio" && name != "capuchin") continue;
      INFO(name);
      const MovePlan plan = planner(trace, rates);
      if (!plan.forecast.is_hidden()) continue;
      std::vector<Window> out, in, written, read;
      for (const Move& m : plan.moves) {
        if (m.what != What::offload) continue;
        ++moved;
        const Bytes bytes = trace.tensors[m.tensor].bytes;
        out.push_back({m.out_after + 1, m.out_by + 1, bytes});
        in.push_back({m.in_at, m.in_before, bytes});
        if (m.where == Where::host) continue;
        written.push_back(out.back());
        read.push_back(in.back());
      }
      const std::vector<Seconds> axis = time_axis(trace);
      check_room(out, axis, rates.out_host);
      check_room(in, axis, rates.in_host);
      check_room(written, axis, rates.out_storage);
      check_room(read, axis, rates.in_storage);
    }
  });
  CHECK(moved > 500);
}

TEST_CASE("planners that look at memory leave a trace that fits alone", "[offload][law]") {
  for_random_traces([](const TensorTrace& trace, Rates rates) {
    rates.gpu_capacity = forecast(trace, {}, keep_all(trace), {}).gpu_peak * 1.02;
    for (const auto& [name, planner] : planners) {
      if (name == "swap_all" || name == "vdnn" || name == "lohan") continue;
      INFO(name);
      for (const Move& m : planner(trace, rates).moves) CHECK(m.what == What::keep);
    }
  });
}

TEST_CASE("Capuchin recomputes nothing where hidden swaps suffice", "[offload][law]") {
  int sufficed = 0;
  for_random_traces([&](TensorTrace trace, const Rates& rates) {
    const MovePlan plan = plan_capuchin(trace, rates);
    for (TensorTrace::Tensor& t : trace.tensors) t.recompute = Seconds(-1);
    const MovePlan swaps = plan_capuchin(trace, rates);
    if (!swaps.forecast.fits || !swaps.forecast.is_hidden()) return;
    ++sufficed;
    CHECK(plan.forecast.recompute.value() == 0);
    CHECK(plan.forecast.fits);
  });
  CHECK(sufficed > 50);
}

TEST_CASE("LoHan's choice is the best of all prefixes, summed up one by one", "[offload][law]") {
  for_random_traces([](const TensorTrace& trace, const Rates& rates) {
    Seconds compute;
    for (const auto& op : trace.operators) compute += op.forward + op.backward;
    // T of a given set of moves, from its definition.
    const auto slowest = [&](const std::vector<Move>& moves) {
      Seconds gpu = compute;
      Bytes link, drives;
      for (const Move& m : moves) {
        const TensorTrace::Tensor& t = trace.tensors[m.tensor];
        if (m.what == What::recompute) gpu += t.recompute;
        if (m.what == What::offload) link += t.bytes;
        if (m.what == What::offload && m.where == Where::storage) drives += t.bytes;
      }
      return std::max({gpu, link / rates.out_host, link / rates.in_host,
                       drives / rates.out_storage + drives / rates.in_storage});
    };
    const std::vector<Move> chosen = plan_lohan(trace, rates).moves;
    std::vector<std::size_t> movable, order;
    for (std::size_t i = 0; i < trace.tensors.size(); ++i)
      if (trace.tensors[i].may_move) movable.push_back(i);
    // Nothing before it in its layer, or no way: swapped whatever it costs.
    const auto must = [&](std::size_t i) {
      const auto layer = [&](std::size_t k) {
        return trace.operators[trace.tensors[k].first].layer;
      };
      bool has_source = false;
      for (std::size_t k = 0; k < trace.tensors.size(); ++k)
        has_source |= layer(k) == layer(i) && trace.tensors[k].first < trace.tensors[i].first;
      return !has_source || trace.tensors[i].recompute < Seconds();
    };
    for (const std::size_t i : movable)
      if (must(i)) order.push_back(i);
    const auto forced = static_cast<std::ptrdiff_t>(order.size());
    for (const std::size_t i : movable)
      if (!must(i)) order.push_back(i);
    std::stable_sort(order.begin() + forced, order.end(), [&](std::size_t a, std::size_t b) {
      const auto cost = [&](std::size_t i) {
        return trace.tensors[i].recompute.value() / trace.tensors[i].bytes.value();
      };
      return cost(a) > cost(b);
    });
    for (std::size_t k = static_cast<std::size_t>(forced); k <= order.size(); ++k) {
      std::vector<Move> moves = keep_all(trace);
      Bytes room = rates.host_capacity;
      for (std::size_t j = 0; j < order.size(); ++j) {
        const bool in_host = trace.tensors[order[j]].bytes <= room;
        moves[order[j]].what = j < k ? What::offload : What::recompute;
        moves[order[j]].where = in_host ? Where::host : Where::storage;
        if (j < k && in_host) room -= trace.tensors[order[j]].bytes;
      }
      CHECK(slowest(chosen).value() <= slowest(moves).value() * (1 + 1e-9));
    }
  });
}
