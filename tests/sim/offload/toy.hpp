#pragma once

#include <vector>

#include "sim/offload/moves.hpp"

/// Traces small enough for mental arithmetic.
namespace tidegate::toy {

/// n operators of one second each way, each of which saves one tensor of 1 GB that only its own
/// backward needs. Nothing else is held. Points are seconds: point p runs from p s to p+1 s.
/// Kept, GPU memory is 1, 2 … n, n … 2, 1 GB.
inline TensorTrace stairs(std::size_t n) {
  TensorTrace trace;
  for (std::size_t i = 0; i < n; ++i) {
    trace.operators.push_back({.layer = i, .op = 0, .forward = Seconds(1), .backward = Seconds(1)});
    trace.tensors.push_back({.name = std::string(1, static_cast<char>('A' + i)),
                             .bytes = Bytes(1e9),
                             .first = i,
                             .last = i});
  }
  trace.transient.resize(2 * n);
  return trace;
}

/// The same as one layer, with these times to make tensors again.
inline TensorTrace layer(const std::vector<double>& recompute) {
  TensorTrace trace = stairs(recompute.size());
  for (std::size_t i = 0; i < recompute.size(); ++i) {
    trace.operators[i] = {.layer = 0, .op = i, .forward = Seconds(1), .backward = Seconds(1)};
    trace.tensors[i].recompute = Seconds(recompute[i]);
  }
  return trace;
}

/// No latency; link and drives in GB/s, both directions alike, memory in GB.
inline Rates rates(double link, double drives, double gpu, double host) {
  return {.out_host = BytesPerSecond(link * 1e9),
          .in_host = BytesPerSecond(link * 1e9),
          .out_storage = BytesPerSecond(drives * 1e9),
          .in_storage = BytesPerSecond(drives * 1e9),
          .latency_host = {},
          .latency_storage = {},
          .gpu_capacity = Bytes(gpu * 1e9),
          .host_capacity = Bytes(host * 1e9)};
}

/// GB at each point.
inline std::vector<double> gigabytes(const TensorTrace& trace, const std::vector<Move>& moves) {
  std::vector<double> all;
  for (const Bytes b : memory_curve(trace, moves)) all.push_back(b.value() / 1e9);
  return all;
}

/// The tensors that do `what`, by name: "AB".
inline std::string named(const TensorTrace& trace, const std::vector<Move>& moves,
                         Move::What what) {
  std::string names;
  for (const Move& move : moves)
    if (move.what == what) names += trace.tensors[move.tensor].name;
  return names;
}

}  // namespace tidegate::toy
