#include "calib/cluster/together.hpp"

#include <algorithm>

#include "calib/rig/interrupt.hpp"

namespace tidegate::calib {
namespace {

TakenSample plain(double value, double elapsed) {
  return {.value = value, .at = 0, .elapsed = elapsed, .spoiled = {}, .series = {}};
}

// Samples of one network row in one block; one warm-up.
template <class Once>
Block block_of(std::int32_t pass, Once&& once) {
  constexpr int samples = 9;
  Block block{.pass = pass, .is_converged = true, .samples = {}};
  once();
  for (int i = 0; i < samples; ++i) {
    const auto [value, elapsed] = once();
    block.samples.push_back(plain(value, elapsed));
  }
  return block;
}

Block& block_for(Measurements& m, const Row& row, std::int32_t pass) {
  const std::string id = row.id();
  auto at = std::ranges::find_if(m.rows, [&id](const RowResult& r) { return r.row.id() == id; });
  if (at == m.rows.end()) at = m.rows.insert(m.rows.end(), RowResult{row, {}, {}});
  at->blocks.push_back({.pass = pass, .is_converged = true, .samples = {}});
  return at->blocks.back();
}

struct Value {
  double value, elapsed;
};

void network_pass(Team& team, Measurements& m, std::int32_t pass) {
  const double n = team.size();
  for (const double bytes : {65536., 1048576., 16777216., 67108864.}) {
    const Row row{.quantity = "net.all_reduce",
                  .at = {{"bytes", bytes}, {"ranks", n}},
                  .unit = Unit::bytes_per_second,
                  .gate = Gate::none};
    block_for(m, row, pass) = block_of(pass, [&] {
      const double s = team.all_reduce(static_cast<std::int64_t>(bytes)).value();
      return Value{2 * (n - 1) / n * bytes / s, s};
    });
  }
  for (std::int32_t peer = 1; peer < team.size(); ++peer) {
    const Row latency{.quantity = "net.latency",
                      .at = {{"peer", double(peer)}},
                      .unit = Unit::seconds,
                      .gate = Gate::none};
    block_for(m, latency, pass) = block_of(pass, [&] {
      const double s = team.send(peer, 8).value();
      return Value{s, s};
    });
    for (const double bytes : {1048576., 67108864.}) {
      const Row row{.quantity = "net.send",
                    .at = {{"bytes", bytes}, {"peer", double(peer)}},
                    .unit = Unit::bytes_per_second,
                    .gate = Gate::none};
      block_for(m, row, pass) = block_of(pass, [&] {
        const double s = team.send(peer, static_cast<std::int64_t>(bytes)).value();
        return Value{bytes / s, s};
      });
    }
  }
}

}  // namespace

Measurements measure_network(Team& team, std::int32_t passes) {
  Measurements m;
  m.passes = passes;
  m.is_complete = true;
  for (std::int32_t pass = 0; pass < passes && team.size() > 1; ++pass) {
    if (team.any(rig::is_interrupted())) {
      m.is_complete = false;
      return m;
    }
    network_pass(team, m, pass);
  }
  return m;
}

}  // namespace tidegate::calib
