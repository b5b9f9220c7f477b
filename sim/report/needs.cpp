#include "sim/report/needs.hpp"

#include <array>
#include <limits>
#include <span>
#include <utility>

#include "sim/report/allocation.hpp"

namespace tidegate {
namespace {

// An allocation or a free of something that has no name but a number by first appearance: pools
// that are asked for the same have equal changes.
struct Change {
  Instant at = 0;
  std::uint32_t number = 0;  // an index into PoolChanges::asked
  bool is_free = false;
  bool operator==(const Change&) const = default;
};

struct Asked {
  std::int64_t bytes = 0;
  std::uint32_t stream = 0;  // by first appearance too
  bool operator==(const Asked&) const = default;
};

// In the order of moments.hpp but for their times: what comes first at one instant comes first.
struct PoolChanges {
  std::vector<Change> earlier;  // ends of tasks that started earlier
  std::vector<Change> others;
  std::vector<Asked> asked;            // by number
  std::vector<std::uint32_t> streams;  // by number of a stream
  bool operator==(const PoolChanges& other) const {
    return asked == other.asked && earlier == other.earlier && others == other.others;
  }
};

class Collector {
 public:
  Collector(const Plan& plan, const Timeline& timeline)
      : plan_(plan), timeline_(timeline), pools_(plan.pools.size()), numbers_(plan.buffers.size()) {
    const std::size_t each = 2 * plan.buffers.size() / std::max<std::size_t>(pools_.size(), 1);
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      is_gpu_.push_back(plan_.pools[p].place.tier == Tier::gpu);
      if (!is_gpu(p)) continue;
      for (auto* list : {&pools_[p].earlier, &pools_[p].others}) list->reserve(each / 2);
      pools_[p].asked.reserve(each / 2);
    }
  }

  std::vector<PoolChanges> collect() {
    for (std::uint32_t t = 0; t < plan_.size(); ++t) {
      const auto effects = plan_.effects(TaskId{t});
      if (effects.empty() || is_skipped(plan_, TaskId{t}, timeline_)) continue;
      stream_ = unknown;
      for (const Effect& e : effects) {
        if (e.kind == Effect::Kind::allocate && holds(e.when, timeline_)) allocate(t, e.target);
      }
      for (const Effect& e : effects) {
        if (e.kind == Effect::Kind::free && holds(e.when, timeline_)) free(t, e.target);
      }
    }
    return std::move(pools_);
  }

 private:
  bool is_gpu(std::size_t pool) const { return is_gpu_[pool] != 0; }

  void allocate(std::uint32_t t, std::uint32_t buffer) {
    const std::size_t p = index(plan_.buffers[buffer].pool);
    PoolChanges& pool = pools_[p];
    const std::uint32_t stream = is_gpu(p) ? stream_number(pool, TaskId{t}) : 0;
    const std::uint32_t number = number_of(pool, buffer);
    pool.asked[number].stream = stream;
    pool.others.push_back({timeline_.start[t], number, false});
  }

  void free(std::uint32_t t, std::uint32_t buffer) {
    PoolChanges& pool = pools_[index(plan_.buffers[buffer].pool)];
    const bool is_earlier = timeline_.start[t] < timeline_.end[t];
    (is_earlier ? pool.earlier : pool.others)
        .push_back({timeline_.end[t], number_of(pool, buffer), true});
  }

  std::uint32_t number_of(PoolChanges& pool, std::uint32_t buffer) {
    std::uint32_t& known = numbers_[buffer];  // one more than the number
    if (known == 0) {
      pool.asked.push_back({plan_.buffers[buffer].bytes, 0});
      known = static_cast<std::uint32_t>(pool.asked.size());
    }
    return known - 1;
  }

  std::uint32_t stream_number(PoolChanges& pool, TaskId task) {
    if (stream_ == unknown) stream_ = stream_of(plan_, task);
    const auto known = std::ranges::find(pool.streams, stream_);
    const auto number = static_cast<std::uint32_t>(known - pool.streams.begin());
    if (known == pool.streams.end()) pool.streams.push_back(stream_);
    return number;
  }

  static constexpr std::uint32_t unknown = std::numeric_limits<std::uint32_t>::max();
  const Plan& plan_;
  const Timeline& timeline_;
  std::vector<PoolChanges> pools_;
  std::vector<std::uint32_t> numbers_;  // by buffer
  std::vector<std::uint8_t> is_gpu_;    // by pool
  std::uint32_t stream_ = unknown;      // of the task whose effects are looked at
};

// Both lists as one, by time. Stable: digits from the least to the highest, since instants are
// whole numbers and there are many.
std::vector<Change> by_time(const PoolChanges& pool) {
  constexpr int digit_bits = 11;
  constexpr std::size_t digits = std::size_t{1} << digit_bits;
  std::vector<Change> list(pool.earlier.size() + pool.others.size());
  const auto rest = std::ranges::copy(pool.earlier, list.begin()).out;
  std::ranges::copy(pool.others, rest);
  Instant latest = 0;
  for (const Change& c : list) latest = std::max(latest, c.at);
  std::vector<Change> spare(list.size());
  std::array<std::uint32_t, digits> first{};
  for (int shift = 0; shift < 63 && latest >> shift != 0; shift += digit_bits) {
    const auto digit = [shift](const Change& c) {
      return static_cast<std::size_t>(c.at >> shift) % digits;
    };
    first.fill(0);
    for (const Change& c : list) ++first[digit(c)];
    std::uint32_t sum = 0;
    for (std::uint32_t& f : first) sum += std::exchange(f, sum);
    for (const Change& c : list) spare[first[digit(c)]++] = c;
    list.swap(spare);
  }
  return list;
}

std::int64_t peak_of(std::span<const Change> changes, std::span<const Asked> asked) {
  std::int64_t held = 0, peak = 0;
  for (const Change& c : changes) {
    held += c.is_free ? -asked[c.number].bytes : asked[c.number].bytes;
    peak = std::max(peak, held);
  }
  return peak;
}

void play(std::span<const Change> changes, std::span<const Asked> asked, Bytes capacity,
          const AllocatorOptions& options, PoolNeed& need) {
  CachingAllocator allocator(whole_bytes(capacity), options);
  std::vector<CachingAllocator::BlockId> blocks(asked.size());
  for (const Change& c : changes) {
    const auto [bytes, stream] = asked[c.number];
    if (bytes == 0) continue;
    if (c.is_free) {
      allocator.free(blocks[c.number]);
      continue;
    }
    const auto block = allocator.allocate(bytes, stream);
    if (!block) {
      need.refused = allocator.reserved() + bytes;
      return;
    }
    blocks[c.number] = *block;
    need.reserved = std::max(need.reserved, allocator.reserved());
  }
}

}  // namespace

std::vector<PoolNeed> pool_needs(const Plan& plan, const Timeline& timeline,
                                 const AllocatorOptions& options) {
  const std::vector<PoolChanges> pools = Collector(plan, timeline).collect();
  std::vector<PoolNeed> needs(pools.size());
  for (std::size_t p = 0; p < pools.size(); ++p) {
    const Pool& pool = plan.pools[p];
    const bool is_gpu = pool.place.tier == Tier::gpu;
    const auto is_same = [&](std::size_t other) {
      return plan.pools[other].place.tier == Tier::gpu &&
             plan.pools[other].capacity == pool.capacity && pools[other] == pools[p];
    };
    std::size_t same = 0;
    while (same < p && !(is_gpu && is_same(same))) ++same;
    if (same < p) {
      needs[p] = needs[same];
      continue;
    }
    const std::vector<Change> changes = by_time(pools[p]);
    needs[p].peak = peak_of(changes, pools[p].asked);
    needs[p].is_over = static_cast<double>(needs[p].peak) > pool.capacity.value();
    if (is_gpu) play(changes, pools[p].asked, pool.capacity, options, needs[p]);
  }
  return needs;
}

}  // namespace tidegate
