#include "sim/policy/sub_groups.hpp"

#include <algorithm>
#include <numeric>

#include "models/base/error.hpp"

namespace tidegate {

std::vector<SubGroup> pack_sub_groups(std::span<const Parameter> parameters, std::int64_t world,
                                      std::int64_t size) {
  ensure(world > 0 && size > 0, "sub-groups need a world and a size");
  std::vector<SubGroup> groups;
  SubGroup open;
  for (const Parameter& p : parameters) {
    open.elements += (p.elements + world - 1) / world;
    if (open.elements < size) continue;
    groups.push_back(open);
    open = {};
  }
  if (open.elements > 0) groups.push_back(open);
  return groups;
}

std::int64_t largest(std::span<const SubGroup> groups) {
  std::int64_t most = 0;
  for (const SubGroup& g : groups) most = std::max(most, g.elements);
  return most;
}

std::vector<std::uint16_t> assign_modulo(std::size_t count, std::int64_t modulus) {
  std::vector<std::uint16_t> path(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (static_cast<std::int64_t>(i) % modulus == 0) path[i] = 1;
  }
  return path;
}

std::vector<std::uint16_t> assign_shares(std::span<const SubGroup> groups,
                                         std::span<const double> shares) {
  const double whole = std::accumulate(shares.begin(), shares.end(), 0.0);
  ensure(whole > 0, "path shares add up to more than nothing");
  std::vector<double> placed(shares.size(), 0);
  std::vector<std::uint16_t> path;
  double total = 0;
  for (const SubGroup& g : groups) {
    total += static_cast<double>(g.elements);
    std::size_t best = 0;
    double most = -1e300;
    for (std::size_t p = 0; p < shares.size(); ++p) {
      const double missing = total * shares[p] / whole - placed[p];
      if (shares[p] > 0 && missing > most) most = missing, best = p;
    }
    placed[best] += static_cast<double>(g.elements);
    path.push_back(static_cast<std::uint16_t>(best));
  }
  return path;
}

}  // namespace tidegate
