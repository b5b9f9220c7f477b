#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "bench/loads.hpp"

/// What the reference loops share: how fast the loads can run on a bare exact max-min solver
/// without latencies, lanes, weights, caps, memory or tokens.
///   classes   flows with equal routes form one class with a service clock; only the component that
///             changed is filled again; clocks are brought up to date when a rate changes
///   dense     the same over dense arrays per component, with vector instructions
///   textbook  one entry per flow; everything is computed afresh after every event
/// Compiled for the machine at hand (-march=native, AVX2), unlike the product.
namespace tidegate::bench {

using std::uint32_t;
using std::uint64_t;
using std::vector;

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double TIE = 1e-14;  // completions closer than this (relative) are one event

struct Entry {  // a flow in its class's heap: virtual service at which it ends
  double end;
  uint32_t task;
};

// 4-ary min-heap in caller-owned storage
static inline void heap_push(Entry* h, uint32_t n, Entry e) {
  uint32_t i = n;
  while (i) {
    uint32_t p = (i - 1) >> 2;
    if (h[p].end <= e.end) break;
    h[i] = h[p];
    i = p;
  }
  h[i] = e;
}
static inline void heap_pop(Entry* h, uint32_t n) {  // n: size before
  Entry e = h[--n];
  uint32_t i = 0;
  for (;;) {
    uint32_t c = 4 * i + 1;
    if (c >= n) break;
    uint32_t best = c, last = std::min(c + 4, n);
    for (uint32_t k = c + 1; k < last; k++)
      if (h[k].end < h[best].end) best = k;
    if (h[best].end >= e.end) break;
    h[i] = h[best];
    i = best;
  }
  h[i] = e;
}

}  // namespace tidegate::bench
