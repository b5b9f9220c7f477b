#include "calib/bench/sweeps.hpp"

#include <algorithm>
#include <bit>

namespace tidegate::calib {

std::size_t fitting(const Setup& setup, double part, std::size_t bytes) {
  const double granted = part * setup.host.memory_available.value();
  return std::bit_floor(static_cast<std::size_t>(granted) / bytes);
}

std::vector<int> thread_counts(const Setup& setup) {
  const int all = std::max(setup.threads, 1);
  std::vector<int> counts = {1};
  if (setup.effort == Effort::full && all <= 16) {
    for (int n = 2; n < all; ++n) counts.push_back(n);
  } else if (setup.effort != Effort::quick) {
    for (int n = 2; n < all; n *= 2) counts.push_back(n);
  }
  if (all > 1) counts.push_back(all);
  return counts;
}

std::vector<std::size_t> sizes(std::size_t first, std::size_t most, std::size_t factor) {
  std::vector<std::size_t> all;
  for (std::size_t size = first; size < most; size *= factor) all.push_back(size);
  all.push_back(most);
  return all;
}

Row cpu_row(std::string quantity, Settings at, Unit unit, const Ceiling& ceiling) {
  Row row;
  row.quantity = std::move(quantity);
  row.at = std::move(at);
  row.unit = unit;
  row.gate = Gate::cpu;
  row.ceiling = ceiling.value;
  row.ceiling_from = ceiling.from;
  return row;
}

float keyed(std::size_t i, std::uint32_t key) {
  // Multiplicative hashing (Knuth, TAOCP 6.4): the upper bits of a product are well mixed.
  const std::uint32_t mixed = (static_cast<std::uint32_t>(i) + key * 0x10001U) * 2654435769U;
  return std::bit_cast<float>(0x3f800000U | mixed >> 9);
}

void fill_keyed(std::span<float> a, std::uint32_t key) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = keyed(i, key);
}

std::vector<std::size_t> spots(std::size_t n) {
  std::vector<std::size_t> all;
  if (n == 0) return all;
  // An odd step visits all places within pages and lines.
  const std::size_t step = n / 1000 | 1;
  for (std::size_t i = 0; i < n; i += step) all.push_back(i);
  all.push_back(n - 1);
  return all;
}

}  // namespace tidegate::calib
