#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "models/demand.hpp"
#include "sim/engine/flow_class.hpp"

/// Flows that share resources max-min fairly, and when the next of them ends.
///
/// For flow classes c with n_c flows, speeds solve
///
///   x_c = min(1, pull_c · λ_c),  sum over c of n_c · fraction_cr · cost_r,side(c) · x_c <= 1 for
///   each r
///
/// with the levels λ lexicographically as high as possible from the lowest up. Progressive filling:
/// raise one common λ; a class stops when it reaches speed 1 or when one of its resources is full.
///
/// Three things keep an event cheap and change no result:
///   - a class has one service clock (seconds at full speed that each of its flows has received),
///   so a
///     flow's end is a fixed mark on that clock and only the earliest mark of a class matters;
///   - a resource whose users fit at full speed limits nobody. Only users of contended resources
///   are
///     filled again, and of those only the component in which something changed. (Two resources are
///     in one component when a class uses both, or a chain of classes joins them.)
///   - a class whose number of flows is the same after an instant as before has changed nothing.
///
/// A class with flows has a slot. What an event reads and writes lies by slot, so that loops over
/// classes run through adjacent memory.
///
/// An end is rounded up to the tick, after taking off 1/64 tick for the rounding of the clock.
/// Nothing is allocated after construction. The same calls give the same bytes on every machine.
namespace tidegate {

constexpr Instant never = std::numeric_limits<Instant>::max();

/// Whole ticks until `left` ticks of service are received at `speed`. Without branches: it is asked
/// of every class whose speed may change.
inline Instant ticks_until(double left, double speed) {
  constexpr double rounding = 1.0 / 64;
  constexpr double longest = 4e18;
  const double exact = left / speed - rounding;
  const double ticks = std::min(std::max(exact, 0.0), longest);
  const auto whole = static_cast<Instant>(ticks);
  return whole + static_cast<Instant>(static_cast<double>(whole) < ticks);
}

/// Calls visit(64 · word + i) for each bit i that is set.
template <class Visit>
void each_bit(std::uint64_t bits, std::size_t word, Visit&& visit) {
  for (; bits != 0; bits &= bits - 1) {
    visit(static_cast<std::uint32_t>(64 * word) +
          static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
}

class Sharing {
 public:
  /// most_flows: by class, the most flows at the same time; most_running: the same over all
  /// classes.
  Sharing(std::span<const Resource> resources, const FlowTable& table,
          std::span<const std::uint32_t> most_flows, std::size_t most_running);

  /// Adds a flow that takes `alone` ticks at full speed. It has no speed before settle(now).
  void join(std::uint32_t flow_class, std::uint32_t task, double alone, Instant now);
  /// Gives every flow its speed after the joins and ends of this instant.
  void settle(Instant now);
  /// When a flow ends or a resource tires, whichever is first. Valid after settle.
  Instant next();
  /// Appends the flows that end now = next().
  void take_ended(Instant now, std::vector<std::uint32_t>& ended);

  double speed(std::uint32_t flow_class) const {
    const std::uint32_t slot = classes_[flow_class].slot;
    return slot == no_slot ? 0 : slots_[slot].speed;
  }

 private:
  struct Mark {  ///< reading of the class's clock at which a flow ends
    double at;
    std::uint32_t task;
    bool operator<(const Mark& other) const { return at < other.at; }
  };
  static constexpr std::uint32_t no_slot = std::numeric_limits<std::uint32_t>::max();
  struct Class {
    double pull = 1;
    std::uint32_t marks = 0;  ///< first of its heap
    std::uint32_t first_share = 0, share_count = 0;
    std::uint32_t slot = no_slot;
  };
  struct Part {  ///< a sum of terms, and their number
    double sum = 0, terms = 0;
  };
  struct Term {       ///< of one class on one resource
    Part part{0, 1};  ///< flows · pull · fraction · cost, at the last settle, and one
    std::uint32_t resource = 0;
  };
  /// A class with flows, as far as filling reads and writes it: one cache line.
  struct alignas(64) Slot {
    double served = 0, speed = 0;  ///< clock at `since`, and its pace
    Instant since = 0;
    double first_mark = 0;  ///< while it has flows
    double pull = 1;
    const Term *first_term = nullptr, *last_term = nullptr;
  };
  struct Flows {  ///< the rest of a slot
    std::uint32_t flow_class = 0;
    std::uint32_t first_share = 0, last_share = 0;
    std::uint32_t count = 0, settled = 0;  ///< flows now and at the last settle
    bool is_touched = false;
  };
  /// Sum of the terms on a resource. Kept up by differences, and summed afresh before their
  /// rounding can matter.
  struct Pull {
    Part part;
    double highest = 0;  ///< sum since it was summed afresh
    std::uint32_t age = 0;
  };
  struct Use {  ///< one side of a resource
    std::int64_t load = 0;
    double cost = 1;
    std::uint32_t flows = 0;
  };
  static constexpr std::uint32_t oldest_pull = 256;
  /// Contended resources of one component while the level rises, in adjacent places. The last place
  /// is for those that are not contended.
  struct Fill {
    std::vector<double> room;      ///< what is left when those that stopped have taken their parts
    std::vector<Part> open;        ///< of the terms of those that have not stopped
    std::vector<double> last_sum;  ///< sum at the last call of tightest()
    std::vector<double> worn;      ///< below this, sum has lost too many digits
    std::vector<double> full_at;
    std::vector<std::uint32_t> resource;
    std::size_t count = 0;
  };
  struct Component {
    std::uint32_t first = 0,
                  count = 0;  ///< its contended resources: contended_[first, first + count)
    bool is_dirty = false;
  };
  /// Takes a class that stops out of those that go on; tightest() takes its part out of the room.
  struct Leave {
    Part* const* place;
    void operator()(const Slot& slot) const {
      for (const Term* term = slot.first_term; term != slot.last_term; ++term) {
        Part& part = *place[term->resource];
        part = {part.sum - term->part.sum, part.terms - term->part.terms};
      }
    }
  };
  struct Burst {  ///< of a resource that tires; `left` and `full` in ticks of full-rate work
    std::uint32_t resource;
    double full, left, recovery, pace;
    Instant since, spent_at;
  };
  struct Tightest {
    std::size_t place;
    double level;
  };

  std::span<const Resource> resources_;
  std::span<const FlowShare> shares_;
  std::vector<Term> terms_;         // by share
  std::vector<std::int64_t> part_;  // by share: load of one flow
  std::vector<Class> classes_;      // by class
  std::vector<Mark> marks_;         // heaps of all classes

  // By slot.
  std::vector<Slot> slots_;
  std::vector<Flows> flows_;
  std::vector<Instant> due_;
  static constexpr std::size_t group = 8;
  std::vector<Instant> group_due_;  // the earliest of each group of slots
  std::vector<std::uint32_t> touched_, free_slots_;
  std::size_t slots_used_ = 0;
  std::size_t words_ = 0, words_used_ = 0;  // of 64 slots

  // By use (2 · resource + side), then by resource.
  std::vector<Use> uses_;
  std::vector<std::uint64_t> users_;  // bits of the slots that use the resource, `words_` each
  std::vector<std::uint8_t> is_contended_, is_plain_;  // plain: its cost is always 1
  std::vector<Pull> pull_;
  std::vector<std::uint32_t> component_of_;
  std::vector<Part*> place_;  // in fill_.open
  std::vector<Burst> bursts_;
  std::vector<std::uint64_t> changed_;  // bits of resources

  std::vector<Component> components_;
  std::vector<std::uint32_t> contended_, dirty_;

  Fill fill_;
  std::vector<std::uint64_t> open_;  // bits of the slots that have not stopped
  std::vector<std::uint64_t> every_slot_;
  double highest_pull_ = 0;  // of all classes
  double lowest_cap_ = 0;    // at most the lowest cap of an open class

  std::span<const Term> terms(const Slot& slot) const { return {slot.first_term, slot.last_term}; }
  void reserve_slots(std::size_t slots);
  void join_components();
  std::uint32_t take_slot(std::uint32_t flow_class);
  void give_slot(std::uint32_t slot);
  /// Brings the clock up to now.
  void touch(std::uint32_t slot, Instant now);
  void take_ended_of(std::uint32_t slot, Instant now, std::vector<std::uint32_t>& ended);
  void apply(std::uint32_t slot);
  void price_use(std::uint32_t resource);
  static void set_term(Term& term, Pull& pull, double after);
  void change(std::uint32_t resource) {
    changed_[resource / 64] |= std::uint64_t{1} << resource % 64;
  }
  void recheck();
  void recheck(std::uint32_t resource);
  void run_at(std::uint32_t slot, double speed, Instant now);

  void fill(Component& component, Instant now);
  void open_filling(Component& component);
  void open_resource(std::uint32_t resource);
  double pull_sum(std::uint32_t resource, std::span<const std::uint64_t> among) const;
  Tightest tightest(double level);
  static void empty_places(std::size_t count, const Part* __restrict open, double* __restrict worn,
                           double* __restrict last_sum, double* __restrict room);
  static void full_levels(double level, std::size_t count, const Part* __restrict open,
                          const double* __restrict worn, double* __restrict last_sum,
                          double* __restrict room, double* __restrict full_at);
  void sum_worn_afresh();
  bool stop_users(const Tightest& full, Instant now);
  void stop_capped(double level, Instant now);
  void stop_rest(Instant now);
  void run_touched(Instant now);

  void drain(Instant now);
  void set_paces(Instant now);
  bool is_tired(std::uint32_t resource) const;
};

}  // namespace tidegate
