#include "sim/search/corners.hpp"

#include <algorithm>
#include <limits>

namespace tidegate {
namespace {

using Corner = std::vector<std::uint16_t> Axis::*;

// Every combination of the options that matter.
std::vector<Picks> corners_of(const Space& space, const Picks& crossed, Corner corner) {
  std::vector<Picks> all = {crossed};
  for (std::size_t a = space.crossed; a < space.axes.size(); ++a) {
    const auto& options = space.axes[a].*corner;
    if (options.empty() || !space.applies(a, crossed)) continue;
    std::vector<Picks> more;
    for (const Picks& picks : all) {
      for (const std::uint16_t option : options) {
        more.push_back(picks);
        more.back()[a] = option;
      }
    }
    all = std::move(more);
  }
  return all;
}

bool is_full(const Screening& s, bool Need::* kind) {
  return std::ranges::any_of(s.bound.needs, [&](const Need& n) { return n.*kind && !n.fits(); });
}

bool is_always_full(CandidatePool& pool, const Space& space, const Picks& crossed, Corner corner,
                    bool Need::* kind) {
  return std::ranges::all_of(corners_of(space, crossed, corner), [&](const Picks& picks) {
    const Screening& s = pool.screening(picks);
    return !s.refusal.empty() || is_full(s, kind);
  });
}

// Bytes of files go elsewhere only where they are shared out between paths.
bool is_storage_full(CandidatePool& pool, const Space& space, const Picks& crossed) {
  for (std::size_t a = space.crossed; a < space.axes.size(); ++a) {
    if (space.axes[a].name == "policy.optimizer.assignment" && space.applies(a, crossed))
      return false;
  }
  return std::ranges::any_of(pool.screening(crossed).bound.needs,
                             [](const Need& n) { return !n.is_gpu && !n.is_host && !n.fits(); });
}

}  // namespace

bool cannot_fit(CandidatePool& pool, const Space& space, const Picks& crossed) {
  return is_always_full(pool, space, crossed, &Axis::lean_gpu, &Need::is_gpu) ||
         is_always_full(pool, space, crossed, &Axis::lean_host, &Need::is_host) ||
         is_storage_full(pool, space, crossed);
}

Picks leaner(CandidatePool& pool, const Space& space, const Picks& crossed) {
  Picks lean(crossed);
  const Screening now = pool.screening(crossed);
  for (std::size_t a = space.crossed; a < space.axes.size(); ++a) {
    const Axis& axis = space.axes[a];
    if (!space.applies(a, crossed)) continue;
    if (is_full(now, &Need::is_gpu) && !axis.lean_gpu.empty()) lean[a] = axis.lean_gpu.front();
    if (is_full(now, &Need::is_host) && !axis.lean_host.empty()) lean[a] = axis.lean_host.front();
  }
  // Of each axis, the option nearest to the scenario's own with which it still may fit.
  for (std::size_t a = space.crossed; a < space.axes.size(); ++a) {
    if (lean[a] == crossed[a]) continue;
    Picks richer(lean);
    richer[a] = crossed[a];
    for (auto o = static_cast<std::uint16_t>(space.axes[a].options.size());
         o-- > 0 && !pool.screening(richer).bound.may_fit();) {
      richer[a] = o;
    }
    if (pool.screening(richer).bound.may_fit()) lean = richer;
  }
  return lean;
}

Seconds least_bound(CandidatePool& pool, const Space& space, const Picks& crossed, Seconds enough) {
  Seconds least(std::numeric_limits<double>::infinity());
  // Kernels alone may take too long, and hang on no refinement.
  const Bound& own = pool.screening(crossed).bound;
  if (own.time < enough) return own.time;
  if (own.kernels >= enough) return own.kernels;
  for (const Picks& picks : corners_of(space, crossed, &Axis::fastest)) {
    const Screening& s = pool.screening(picks);
    if (!s.refusal.empty()) continue;
    least = std::min(least, s.bound.time);
    if (least < enough) return least;
  }
  return least;
}

}  // namespace tidegate
