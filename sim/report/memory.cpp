#include "sim/report/memory.hpp"

#include <algorithm>

#include "sim/report/moments.hpp"

namespace tidegate {
namespace {

bool moves_memory(const Effect& e) {
  return e.kind == Effect::Kind::allocate || e.kind == Effect::Kind::free;
}

bool is_of_training(const Plan& plan, TaskId task) { return plan.task(task).phase != Phase::other; }

// Bytes of each pool, counted once without owners: where the peaks are.
struct Finding {
  std::int64_t bytes = 0;
  std::int64_t peak = 0;           // of start-up, then of training
  std::size_t startup_change = 0;  // where the peaks are, counted from 1; 0: what was held before
  std::size_t training_change = 0;
  std::optional<std::size_t> over_change;
  std::int64_t steady_peak = 0;
};

std::vector<Finding> find_peaks(const Plan& plan, const Timeline& timeline, const Steady& steady) {
  std::vector<Finding> found(plan.pools.size());
  std::size_t change = 0;
  bool is_training = false;
  play_memory(plan, timeline,
              [&](Instant at, TaskId task, const Buffer& buffer, std::int64_t delta) {
                if (!is_training && is_of_training(plan, task)) {
                  is_training = true;
                  for (Finding& pool : found) pool.peak = pool.bytes;
                }
                Finding& pool = found[index(buffer.pool)];
                // The period begins with what is held after its first instant.
                if (at <= steady.from) pool.steady_peak = pool.bytes + delta;
                pool.bytes += delta;
                ++change;
                if (pool.bytes > pool.peak) {
                  pool.peak = pool.bytes;
                  (is_training ? pool.training_change : pool.startup_change) = change;
                }
                const auto capacity = plan.pools[index(buffer.pool)].capacity.value();
                if (!pool.over_change && static_cast<double>(pool.bytes) > capacity)
                  pool.over_change = change;
                if (at <= steady.to) pool.steady_peak = std::max(pool.steady_peak, pool.bytes);
              });
  return found;
}

}  // namespace

void play_memory(const Plan& plan, const Timeline& timeline, const MemoryChange& seen) {
  const auto list = moments(timeline, plan.size(), [&](TaskId t) {
    return !is_skipped(plan, t, timeline) && std::ranges::any_of(plan.effects(t), moves_memory);
  });
  for (const Moment& m : list) {
    const auto kind = m.is_end() ? Effect::Kind::free : Effect::Kind::allocate;
    for (const Effect& e : plan.effects(m.task())) {
      if (e.kind != kind || !holds(e.when, timeline)) continue;
      const Buffer& buffer = plan.buffers[e.target];
      seen(m.at(), m.task(), buffer, m.is_end() ? -buffer.bytes : buffer.bytes);
    }
  }
}

std::vector<PoolHistory> memory_of(const Plan& plan, const Timeline& timeline,
                                   const Steady& steady) {
  const std::vector<Finding> found = find_peaks(plan, timeline, steady);
  std::vector<PoolHistory> histories(plan.pools.size());
  std::vector<Holding> now(plan.pools.size());
  for (std::size_t p = 0; p < now.size(); ++p) {
    now[p].owner_bytes.resize(plan.owners.size(), 0);
    histories[p].startup = histories[p].training = now[p];
    histories[p].steady_peak = found[p].steady_peak;
  }
  std::size_t change = 0;
  bool is_training = false;
  play_memory(plan, timeline,
              [&](Instant at, TaskId task, const Buffer& buffer, std::int64_t delta) {
                if (!is_training && is_of_training(plan, task)) {
                  is_training = true;
                  for (std::size_t p = 0; p < now.size(); ++p) histories[p].training = now[p];
                }
                const std::size_t p = index(buffer.pool);
                now[p].bytes += delta;
                now[p].owner_bytes[index(buffer.owner)] += delta;
                now[p].at = at, now[p].task = task;
                ++change;
                if (change == found[p].startup_change) histories[p].startup = now[p];
                if (change == found[p].training_change) histories[p].training = now[p];
                if (change == found[p].over_change) histories[p].first_over = now[p];
              });
  return histories;
}

}  // namespace tidegate
