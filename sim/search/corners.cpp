#include "sim/search/corners.hpp"

#include <algorithm>
#include <limits>

namespace tidegate {
namespace {

using Corner = std::vector<std::uint16_t> Axis::*;

bool is_any(const Axis&) { return true; }

// Every combination of the options that matter of some axes, the others as they are.
std::vector<Picks> corners_of(const Space& space, const Picks& picks, Corner corner,
                              bool (*is_wanted)(const Axis&) = is_any) {
  std::vector<Picks> all = {picks};
  for (std::size_t a = space.crossed; a < space.axes.size(); ++a) {
    const auto& options = space.axes[a].*corner;
    if (options.empty() || !space.applies(a, picks) || !is_wanted(space.axes[a])) continue;
    std::vector<Picks> more;
    for (const Picks& known : all) {
      for (const std::uint16_t option : options) {
        more.push_back(known);
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

bool is_always_full(CandidatePool& pool, const std::vector<Picks>& corners, bool Need::* kind) {
  return std::ranges::all_of(corners, [&](const Picks& picks) {
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
  return is_always_full(pool, corners_of(space, crossed, &Axis::lean_gpu), &Need::is_gpu) ||
         is_always_full(pool, corners_of(space, crossed, &Axis::lean_host), &Need::is_host) ||
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

namespace {

bool matters_to_memory_alone(const Axis& axis) { return axis.fastest.empty(); }

// No refinement fits that has these options wherever they matter to the bound.
bool is_too_large(CandidatePool& pool, const Space& space, const Picks& picks) {
  const auto corners = [&](Corner corner) {
    return corners_of(space, picks, corner, matters_to_memory_alone);
  };
  return !pool.screening(picks).bound.may_fit() &&
         (is_always_full(pool, corners(&Axis::lean_gpu), &Need::is_gpu) ||
          is_always_full(pool, corners(&Axis::lean_host), &Need::is_host));
}

// The axes on which speed costs memory.
std::vector<std::size_t> costly_axes(const Space& space, const Picks& picks) {
  std::vector<std::size_t> axes;
  for (std::size_t a = space.crossed; a < space.axes.size(); ++a) {
    if (!space.axes[a].ever_leaner.empty() && space.applies(a, picks)) axes.push_back(a);
  }
  return axes;
}

// The least bound of the refinements that have these options wherever they matter to the bound, but
// on a costly axis any: the first of its options with which something fits has it. Infinite when
// nothing fits. With several costly axes memory is left out.
Seconds least_fitting(CandidatePool& pool, const Space& space, Picks picks, Seconds enough) {
  const Seconds never(std::numeric_limits<double>::infinity());
  const auto bound = [&] {
    const Screening& s = pool.screening(picks);
    return s.refusal.empty() ? s.bound.time : never;
  };
  const Seconds fastest = bound();
  const auto axes = costly_axes(space, picks);
  if (fastest >= enough || axes.size() > 1) return fastest;
  if (axes.empty()) return is_too_large(pool, space, picks) ? never : fastest;
  for (const std::uint16_t option : space.axes[axes.front()].ever_leaner) {
    picks[axes.front()] = option;
    const Seconds time = bound();
    if (time < never && (time >= enough || !is_too_large(pool, space, picks))) return time;
  }
  return never;
}

}  // namespace

Seconds least_bound(CandidatePool& pool, const Space& space, const Picks& crossed, Seconds enough) {
  Seconds least(std::numeric_limits<double>::infinity());
  // Kernels alone may take too long, and hang on no refinement.
  const Bound& own = pool.screening(crossed).bound;
  if (own.time < enough && own.may_fit()) return own.time;
  if (own.kernels >= enough) return own.kernels;
  for (const Picks& picks : corners_of(space, crossed, &Axis::fastest)) {
    least = std::min(least, least_fitting(pool, space, picks, enough));
    if (least < enough) return least;
  }
  return least;
}

}  // namespace tidegate
