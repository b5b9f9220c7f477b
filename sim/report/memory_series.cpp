#include "sim/report/memory_series.hpp"

#include <algorithm>

#include "sim/report/memory.hpp"

namespace tidegate {
namespace {

struct Change {
  Instant at = 0;
  OwnerId owner{};
  std::int64_t delta = 0;
};

std::vector<std::vector<Change>> changes_of(const Plan& plan, const Timeline& timeline) {
  std::vector<std::vector<Change>> changes(plan.pools.size());
  play_memory(plan, timeline, [&](Instant at, TaskId, const Buffer& buffer, std::int64_t delta) {
    changes[index(buffer.pool)].push_back({at, buffer.owner, delta});
  });
  return changes;
}

std::int64_t reserved_at(const AllocatorHistory& history, std::size_t change) {
  const auto after =
      std::ranges::upper_bound(history.steps, change, {}, &AllocatorHistory::Step::change);
  return after == history.steps.begin() ? 0 : std::prev(after)->reserved;
}

// The points to tell of a pool: numbers of its changes, ascending.
std::vector<std::size_t> points_of(const std::vector<Change>& changes, std::size_t from,
                                   std::size_t to, std::int64_t held, std::size_t most) {
  const std::size_t slices = std::max<std::size_t>(1, (most - 1) / 2);
  const bool is_short = to - from < most;
  const std::size_t step = is_short ? 1 : (to - from + slices - 1) / slices;
  std::vector<std::size_t> points;
  for (std::size_t begin = from; begin < to; begin += step) {
    const std::size_t end = std::min(begin + step, to);
    std::size_t highest = begin;
    std::int64_t peak = held + changes[begin].delta;
    for (std::size_t c = begin; c < end; ++c) {
      held += changes[c].delta;
      if (held > peak) peak = held, highest = c;
    }
    if (highest + 1 < end) points.push_back(highest);
    points.push_back(end - 1);
  }
  return points;
}

class Sampler {
 public:
  Sampler(const Plan& plan, const std::vector<Change>& changes,
          const std::optional<AllocatorHistory>& history)
      : changes_(changes), history_(history), by_owner_(plan.owners.size()) {
    for (const std::string& name : plan.owners) series_.owners.push_back({name, {}});
  }

  MemorySeries run(const std::string& pool, const Steady& steady, std::size_t most) {
    series_.pool = pool;
    std::size_t from = 0;
    while (from < changes_.size() && changes_[from].at <= steady.from) ++from;
    std::size_t to = from;
    while (to < changes_.size() && changes_[to].at <= steady.to) ++to;
    play_to(from);
    tell(steady.from);
    for (const std::size_t point : points_of(changes_, from, to, held_, most)) {
      play_to(point + 1);
      tell(changes_[point].at);
    }
    std::erase_if(series_.owners, [](const MemorySeries::Owner& owner) {
      return std::ranges::all_of(owner.bytes, [](std::int64_t bytes) { return bytes == 0; });
    });
    return std::move(series_);
  }

 private:
  void play_to(std::size_t end) {
    for (; played_ < end; ++played_) {
      held_ += changes_[played_].delta;
      by_owner_[index(changes_[played_].owner)] += changes_[played_].delta;
    }
  }
  void tell(Instant at) {
    series_.at.push_back(at);
    series_.held.push_back(held_);
    if (history_)
      series_.reserved.push_back(played_ == 0 ? 0 : reserved_at(*history_, played_ - 1));
    for (std::size_t o = 0; o < by_owner_.size(); ++o)
      series_.owners[o].bytes.push_back(by_owner_[o]);
  }

  const std::vector<Change>& changes_;
  const std::optional<AllocatorHistory>& history_;
  std::vector<std::int64_t> by_owner_;
  std::int64_t held_ = 0;
  std::size_t played_ = 0;
  MemorySeries series_;
};

}  // namespace

std::vector<MemorySeries> memory_series(const Plan& plan, const Timeline& timeline,
                                        const Steady& steady,
                                        std::span<const std::optional<AllocatorHistory>> histories,
                                        std::size_t most_points) {
  const auto changes = changes_of(plan, timeline);
  std::vector<MemorySeries> series;
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    const Pool& pool = plan.pools[p];
    if (pool.place.tier == Tier::storage || changes[p].empty()) continue;
    series.push_back(Sampler(plan, changes[p], histories[p]).run(pool.name, steady, most_points));
  }
  return series;
}

}  // namespace tidegate
