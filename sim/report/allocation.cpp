#include "sim/report/allocation.hpp"

#include <algorithm>
#include <cmath>

#include "sim/report/memory.hpp"

namespace tidegate {
namespace {

struct Request {
  Instant at = 0;
  TaskId task{};
  std::uint32_t buffer = 0;
  bool is_free = false;
};

std::vector<std::vector<Request>> requests_of(const Plan& plan, const Timeline& timeline) {
  std::vector<std::vector<Request>> requests(plan.pools.size());
  play_memory(plan, timeline,
              [&](Instant at, TaskId task, const Buffer& buffer, std::int64_t delta) {
                if (plan.pools[index(buffer.pool)].place.tier != Tier::gpu) return;
                const auto number = static_cast<std::uint32_t>(&buffer - plan.buffers.data());
                requests[index(buffer.pool)].push_back({at, task, number, delta < 0});
              });
  return requests;
}

class Replay {
 public:
  Replay(const Plan& plan, const std::vector<Iteration>& iterations, Bytes capacity,
         const AllocatorOptions& options, std::vector<CachingAllocator::BlockId>& blocks)
      : plan_(plan),
        first_end_(iterations.front().to),
        steady_(steady_period(iterations)),
        capacity_(whole_bytes(capacity)),
        allocator_(capacity_, options),
        blocks_(blocks) {}

  AllocatorHistory run(const std::vector<Request>& requests) {
    for (std::size_t change = 0; change < requests.size(); ++change) {
      const Request& r = requests[change];
      if (plan_.buffers[r.buffer].bytes > 0 && !serve(r)) break;
      record(r.at, change);
    }
    history_.device_allocations = allocator_.device_allocations();
    history_.retries = allocator_.retries();
    history_.grows = steady_.first > 0 && history_.steady.reserved > reserved_before_;
    return std::move(history_);
  }

 private:
  bool serve(const Request& r) {
    if (r.is_free) {
      allocator_.free(blocks_[r.buffer]);
      return true;
    }
    const std::int64_t bytes = plan_.buffers[r.buffer].bytes;
    const auto block = allocator_.allocate(bytes, stream_of(plan_, r.task));
    if (block) {
      blocks_[r.buffer] = *block;
      return true;
    }
    const std::int64_t allocated = allocator_.allocated();
    history_.out_of_memory = AllocatorHistory::OutOfMemory{
        .at = r.at,
        .task = r.task,
        .asked = bytes,
        .allocated = allocated,
        .reserved = allocator_.reserved(),
        .is_fragmentation = allocated + CachingAllocator::rounded(bytes) <= capacity_};
    return false;
  }

  void record(Instant at, std::size_t change) {
    const AllocatorHistory::Peaks now{allocator_.allocated(), allocator_.reserved()};
    if (history_.steps.empty() || history_.steps.back().reserved != now.reserved)
      history_.steps.push_back({change, at, now.reserved});
    if (now.reserved > history_.run.reserved)
      history_.unused_at_peak = now.reserved - now.allocated;
    raise(history_.run, now);
    if (at < first_end_) raise(history_.first, now);
    if (at < steady_.from) reserved_before_ = history_.run.reserved;
    // The period begins with what is held after its first instant.
    if (at <= steady_.from) {
      history_.steady = now;
    } else if (at <= steady_.to) {
      raise(history_.steady, now);
    }
  }

  static void raise(AllocatorHistory::Peaks& peaks, const AllocatorHistory::Peaks& now) {
    peaks.allocated = std::max(peaks.allocated, now.allocated);
    peaks.reserved = std::max(peaks.reserved, now.reserved);
  }

  const Plan& plan_;
  Instant first_end_;
  Steady steady_;
  std::int64_t capacity_;
  CachingAllocator allocator_;
  std::vector<CachingAllocator::BlockId>& blocks_;  // by buffer
  AllocatorHistory history_;
  std::int64_t reserved_before_ = 0;
};

}  // namespace

std::uint32_t stream_of(const Plan& plan, TaskId task) {
  constexpr std::uint32_t default_stream = 0;
  const auto* collective = std::get_if<Collective>(&plan.work(task));
  const bool is_copy = std::holds_alternative<Copy>(plan.work(task));
  const bool is_engine = is_copy && plan.lanes[index(plan.task(task).lane)].width == 1;
  if (collective == nullptr && !is_engine) return default_stream;
  const bool is_gather = collective && collective->kind == CollectiveKind::all_gather;
  const auto lane = static_cast<std::uint32_t>(index(plan.task(task).lane));
  return 2 * lane + (is_gather ? 2 : 1);
}

std::int64_t whole_bytes(Bytes capacity) {
  constexpr double most = 0x1p62;
  return static_cast<std::int64_t>(std::min(std::floor(capacity.value()), most));
}

std::vector<std::optional<AllocatorHistory>> allocator_histories(
    const Plan& plan, const Timeline& timeline, const std::vector<Iteration>& iterations,
    const AllocatorOptions& options) {
  std::vector<std::optional<AllocatorHistory>> histories(plan.pools.size());
  std::vector<CachingAllocator::BlockId> blocks(plan.buffers.size());
  const auto requests = requests_of(plan, timeline);
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    const Pool& pool = plan.pools[p];
    if (pool.place.tier != Tier::gpu) continue;
    histories[p] = Replay(plan, iterations, pool.capacity, options, blocks).run(requests[p]);
    auto& failure = histories[p]->out_of_memory;
    if (!failure || !failure->is_fragmentation || options.expandable_segments) continue;
    const auto growing =
        Replay(plan, iterations, pool.capacity, {.expandable_segments = true}, blocks)
            .run(requests[p]);
    failure->fits_expandable = !growing.out_of_memory;
  }
  return histories;
}

}  // namespace tidegate
