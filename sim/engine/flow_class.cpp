#include "sim/engine/flow_class.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

std::uint64_t quantised(double v) { return (std::bit_cast<std::uint64_t>(v) + (1U << 11)) >> 12; }

std::uint64_t mixed(std::uint64_t state, std::uint64_t v) {
  std::uint64_t z = (state ^ v) * 0x9e3779b97f4a7c15U;
  return z ^ (z >> 32);
}

std::uint32_t use_of(const Share& s) {
  return 2 * static_cast<std::uint32_t>(index(s.resource)) + s.side;
}

// By insertion: a handful at most.
std::array<Share, Demand::most_shares> sorted_shares(const Demand& d) {
  std::array<Share, Demand::most_shares> sorted = d.shares;
  for (std::size_t i = 1; i < d.share_count; ++i) {
    const Share share = sorted[i];
    std::size_t to = i;
    for (; to > 0 && use_of(share) < use_of(sorted[to - 1]); --to) sorted[to] = sorted[to - 1];
    sorted[to] = share;
  }
  return sorted;
}

// Open addressing over indices of a table that the caller keeps; at most half full.
class Lookup {
 public:
  /// The index of an entry with this hash for which same(index) holds, or `fresh`, then remembered.
  template <class Same>
  std::uint32_t find(std::uint64_t hash, std::uint32_t fresh, Same&& same) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    for (std::size_t i = hash & mask();; i = (i + 1) & mask()) {
      Slot& slot = slots_[i];
      if (slot.index == empty) {
        slot = {hash, fresh}, ++count_;
        return fresh;
      }
      if (slot.hash == hash && same(slot.index)) return slot.index;
    }
  }

 private:
  static constexpr std::uint32_t empty = std::numeric_limits<std::uint32_t>::max();
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t index = empty;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::size_t count_ = 0;

  std::size_t mask() const { return slots_.size() - 1; }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.index == empty) continue;
      std::size_t i = slot.hash & mask();
      while (slots_[i].index != empty) i = (i + 1) & mask();
      slots_[i] = slot;
    }
  }
};

class Classifier {
 public:
  explicit Classifier(std::size_t works) {
    table_.kind.reserve(works);
    table_.alone.reserve(works);
    table_.kinds.push_back({});  // the timer
  }

  void add(const Demand& demand) {
    if (demand.share_count == 0 || demand.alone.value() == 0) {
      table_.kind.push_back(0);
      table_.alone.push_back(static_cast<double>(to_ticks(demand.latency + demand.alone)));
      return;
    }
    table_.kind.push_back(kind_of(demand));
    table_.alone.push_back(demand.alone.value() * ticks_per_second);
  }
  FlowTable finish() { return std::move(table_); }

 private:
  FlowTable table_;
  Lookup classes_, kinds_;

  bool same_flow(const FlowClass& c, double pull, std::span<const Share> shares) const {
    if (quantised(c.pull) != quantised(pull)) return false;
    return std::ranges::equal(table_.used(c), shares, [](const FlowShare& a, const Share& b) {
      return a.use == use_of(b) && quantised(a.fraction) == quantised(b.fraction);
    });
  }
  std::uint32_t class_of(const Demand& d) {
    const double pull = d.weight * d.alone.value() / d.amount;
    // The order in which a demand names its resources means nothing.
    const std::array<Share, Demand::most_shares> sorted = sorted_shares(d);
    const std::span<const Share> shares(sorted.data(), d.share_count);
    std::uint64_t hash = mixed(d.share_count, quantised(pull));
    for (const Share& s : shares) hash = mixed(mixed(hash, use_of(s)), quantised(s.fraction));
    const auto fresh = static_cast<std::uint32_t>(table_.classes.size());
    const std::uint32_t found = classes_.find(
        hash, fresh, [&](std::uint32_t i) { return same_flow(table_.classes[i], pull, shares); });
    if (found == fresh) add_class(pull, shares);
    return found;
  }
  void add_class(double pull, std::span<const Share> shares) {
    table_.classes.push_back({pull, static_cast<std::uint32_t>(table_.shares.size()),
                              static_cast<std::uint32_t>(shares.size())});
    for (const Share& s : shares) table_.shares.push_back({s.fraction, use_of(s)});
  }
  std::uint32_t kind_of(const Demand& d) {
    const FlowKind kind{class_of(d), to_ticks(d.latency)};
    const std::uint64_t hash = mixed(kind.flow_class, static_cast<std::uint64_t>(kind.latency));
    const auto fresh = static_cast<std::uint32_t>(table_.kinds.size());
    const std::uint32_t found = kinds_.find(hash, fresh, [&](std::uint32_t i) {
      const FlowKind& k = table_.kinds[i];
      return k.flow_class == kind.flow_class && k.latency == kind.latency;
    });
    if (found == fresh) table_.kinds.push_back(kind);
    return found;
  }
};

void check(const Demand& d, std::size_t resource_count) {
  const auto is_duration = [](Seconds s) { return s.value() >= 0 && std::isfinite(s.value()); };
  ensure(is_duration(d.latency) && is_duration(d.alone), "a demand's times are finite");
  if (d.share_count == 0 || d.alone.value() == 0) return;
  ensure(d.amount > 0 && std::isfinite(d.amount), "a demand that uses resources has an amount");
  ensure(d.weight > 0 && std::isfinite(d.weight), "a demand's weight is positive");
  for (const Share& s : d.used()) {
    ensure(index(s.resource) < resource_count && s.side < 2, "a demand names an existing resource");
    ensure(s.fraction > 0 && s.fraction <= 1, "a share is a fraction of a resource in (0, 1]");
  }
}

}  // namespace

FlowTable classify(std::span<const Demand> demands, std::size_t resource_count) {
  Classifier classifier(demands.size());
  for (const Demand& demand : demands) {
    check(demand, resource_count);
    classifier.add(demand);
  }
  return classifier.finish();
}

}  // namespace tidegate
