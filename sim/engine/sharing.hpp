#pragma once

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
///   x_c = min(1, pull_c · λ_c),  sum over c of n_c · fraction_cr · cost_r,side(c) · x_c <= 1 for each r
///
/// with the levels λ lexicographically as high as possible from the lowest up. Progressive filling:
/// raise one common λ; a class stops when it reaches speed 1 or when one of its resources is full.
///
/// Three things keep an event cheap and change no result:
///   - a class has one service clock (seconds at full speed that each of its flows has received), so a
///     flow's end is a fixed mark on that clock and only the earliest mark of a class matters;
///   - a resource whose users fit at full speed limits nobody. Only classes connected with a change
///     through contended resources are filled again;
///   - a class whose number of flows is the same after an instant as before has changed nothing.
///
/// An end is rounded up to the tick, after taking off 1/64 tick for the rounding of the clock.
/// Nothing is allocated after construction. The same calls give the same bytes on every machine.
namespace tidegate {

constexpr Instant never = std::numeric_limits<Instant>::max();

/// Whole ticks until `left` ticks of service are received at `speed`.
inline Instant ticks_until(double left, double speed) {
  constexpr double rounding = 1.0 / 64;
  constexpr double longest = 4e18;
  const double ticks = left / speed - rounding;
  if (!(ticks > 0)) return 0;
  if (ticks > longest) return static_cast<Instant>(longest);
  const auto whole = static_cast<Instant>(ticks);
  return whole + (static_cast<double>(whole) < ticks ? 1 : 0);
}

/// Calls visit(64 · word + i) for each bit i that is set.
template <class Visit>
void each_bit(std::uint64_t bits, std::size_t word, Visit&& visit) {
  for (; bits != 0; bits &= bits - 1) {
    visit(static_cast<std::uint32_t>(64 * word) + static_cast<std::uint32_t>(std::countr_zero(bits)));
  }
}

class Sharing {
 public:
  /// most_flows: by class, the most flows at the same time; most_running: the same over all classes.
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

  double speed(std::uint32_t flow_class) const { return flows_[flow_class].speed; }

 private:
  struct Mark {  ///< reading of the class's clock at which a flow ends
    double at;
    std::uint32_t task;
    bool operator<(const Mark& other) const { return at < other.at; }
  };
  struct alignas(64) Flow {  ///< a class and its flows in progress
    double pull = 1;
    double served = 0, speed = 0;  ///< clock at `since`, and its pace
    double first_mark = 0;         ///< when count > 0
    Instant since = 0;
    std::uint32_t marks = 0;  ///< first of its heap
    std::uint32_t first_share = 0;
    std::uint32_t count = 0, settled = 0;  ///< flows now and at the last settle
    std::uint32_t slot = 0;                ///< while settled > 0
    std::uint8_t share_count = 0;
    bool touched = false;
  };
  struct Term {  ///< flows · pull · fraction · cost of one class on one resource, at the last settle
    double pull = 0;
    std::uint32_t resource = 0;
  };
  /// Sum of the terms of the classes that use a resource. Kept up by differences, and summed afresh
  /// before their rounding can matter.
  struct Pull {
    double sum = 0, highest = 0;
    std::uint32_t age = 0;
  };
  static constexpr std::uint32_t oldest_pull = 256;
  /// A contended resource while the level rises: what is left of it when those that stopped before the
  /// last call of tightest() have taken their parts, and the terms of those that have not stopped.
  struct Fill {
    double room, pull_sum;
    double last_sum, first_sum;  ///< pull_sum at the last call of tightest(), and when summed afresh
  };
  struct Burst {  ///< of a resource that tires; `left` and `full` in ticks of full-rate work
    std::uint32_t resource;
    double full, left, recovery, pace;
    Instant since, spent_at;
  };
  struct Tightest {
    std::uint32_t resource;
    double level;
  };

  std::span<const Resource> resources_;
  std::span<const FlowShare> shares_;
  std::vector<Term> terms_;  // by share
  std::vector<Flow> flows_;  // by class
  std::vector<Mark> marks_;  // heaps of all classes
  std::vector<std::uint32_t> touched_;

  // By slot; a class holds a slot while it has flows.
  std::vector<Instant> due_;
  std::vector<std::uint32_t> class_at_, free_slots_, hits_;
  std::size_t slots_used_ = 0, words_ = 0;

  // By use (2 · resource + side), then by resource.
  std::vector<std::int64_t> load_;
  std::vector<std::uint32_t> flows_on_;
  std::vector<double> cost_;
  std::vector<std::uint64_t> users_;  // bits of the slots that use the resource, `words_` each
  std::vector<std::uint8_t> is_changed_, is_contended_;
  std::vector<std::uint8_t> is_unlisted_;  // contended, and not in listed_
  std::vector<Pull> pull_;
  std::vector<Fill> fill_;
  std::vector<Burst> bursts_;
  std::vector<std::uint32_t> changed_;
  std::vector<std::uint32_t> listed_;     // from which a change spreads; one place to spare
  std::vector<std::uint32_t> contended_;  // those of them that may stop a class
  std::size_t listed_count_ = 0, contended_count_ = 0, unlisted_count_ = 0;

  std::vector<std::uint64_t> open_;  // bits of the slots to be filled
  std::vector<std::uint64_t> every_slot_;
  double highest_pull_ = 0;   // of all classes
  double lowest_cap_ = 0;     // at most the lowest level at which an open class reaches speed 1

  std::span<const FlowShare> used(const Flow& f) const { return shares_.subspan(f.first_share, f.share_count); }
  std::span<const Term> terms(const Flow& f) const { return {&terms_[f.first_share], f.share_count}; }
  void touch(Flow& flow, std::uint32_t flow_class);
  void apply(Flow& flow, std::uint32_t flow_class);
  void take_slot(Flow& flow, std::uint32_t flow_class);
  void give_slot(Flow& flow);
  void change(std::uint32_t resource);
  void price_use(std::uint32_t resource);
  void set_term(std::uint32_t share, const Flow& flow);
  void recheck();
  void run_at(Flow& flow, double speed, Instant now);

  void gather();
  void list_contended_of(std::uint32_t slot);
  void fill(Instant now);
  void open_filling();
  double pull_sum(std::uint32_t resource, std::span<const std::uint64_t> among) const;
  bool has_open(std::uint32_t resource) const;
  Tightest tightest(double level);
  void leave(const Flow& flow);
  void leave_at_full_speed(const Flow& flow);
  bool stop_users(const Tightest& full, Instant now);
  void stop_capped(double level, Instant now);
  void stop_all(Instant now);

  void drain(Instant now);
  void set_paces(Instant now);
  bool is_tired(std::uint32_t resource) const;
};

}  // namespace tidegate
