#include "tests/sim/engine/textbook.hpp"

#include <algorithm>
#include <limits>

namespace tidegate {
namespace {

constexpr double endless = std::numeric_limits<double>::infinity();
constexpr double tie = 1e-13;  // seconds; two events this close are one

struct Running {
  std::size_t task;
  const Demand* demand;
  double wait;  // latency left, seconds
  double left;  // work left, seconds at full speed
  double speed = 0;
  bool is_fixed = false;
  bool flows() const { return wait <= 0; }
};

class Textbook {
 public:
  Textbook(const Plan& plan, std::span<const Demand> demands, std::span<const Resource> resources)
      : plan_(plan),
        demands_(demands),
        resources_(resources),
        end_(plan.size(), -1),
        is_started_(plan.size()),
        is_skipped_(plan.size()),
        is_yes_(plan.choices.size()),
        burst_(resources.size()) {
    for (std::size_t r = 0; r < resources.size(); ++r) burst_[r] = resources[r].burst.value();
  }

  TextbookRun run() {
    while (start_all() || !running_.empty()) {
      set_speeds();
      const double step = next_event();
      if (step == endless) break;
      advance(step);
    }
    return {end_, is_skipped_};
  }

 private:
  const Plan& plan_;
  std::span<const Demand> demands_;
  std::span<const Resource> resources_;
  std::vector<double> end_;
  std::vector<bool> is_started_, is_skipped_;
  std::vector<bool> is_yes_;   // by choice
  std::vector<double> burst_;  // seconds of full-rate work left
  std::vector<Running> running_;
  double now_ = 0;

  bool can_start(std::size_t t) const {
    for (const TaskId before : plan_.after(static_cast<TaskId>(t))) {
      if (end_[index(before)] < 0) return false;
    }
    std::size_t busy = 0;
    for (std::size_t u = 0; u < plan_.size(); ++u) {
      if (plan_.tasks[u].lane != plan_.tasks[t].lane) continue;
      if (u < t && !is_started_[u]) return false;
      if (is_started_[u] && end_[u] < 0) ++busy;
    }
    return busy < plan_.lanes[index(plan_.tasks[t].lane)].width;
  }

  bool holds(When when) const {
    if (when.code == 0) return true;
    return when.code > 0 ? is_yes_[static_cast<std::size_t>(when.code - 1)]
                         : !is_yes_[static_cast<std::size_t>(-when.code - 1)];
  }
  void decide(std::size_t t) {
    for (const Effect& e : plan_.effects(static_cast<TaskId>(t))) {
      if (e.kind != Effect::Kind::decide) continue;
      const std::size_t w = index(plan_.choices[e.target].watched);
      is_yes_[e.target] = plan_.choices[e.target].rule == Choice::Rule::unstarted
                              ? !is_started_[w]
                              : end_[w] < 0 && !is_skipped_[w];
    }
  }

  // Starts what can start, in task order; then tasks without duration end and may let others start.
  bool start_all() {
    bool any = false;
    for (;;) {
      std::vector<std::size_t> over;
      for (std::size_t t = 0; t < plan_.size(); ++t) {
        if (is_started_[t] || !can_start(t)) continue;
        is_started_[t] = any = true;
        is_skipped_[t] = !holds(plan_.tasks[t].when);
        if (!is_skipped_[t]) decide(t);
        const Demand& d = demands_[index(plan_.tasks[t].work)];
        if (is_skipped_[t] || d.latency.value() + d.alone.value() == 0) {
          over.push_back(t);
        } else {
          running_.push_back({t, &d, d.latency.value(), d.alone.value()});
        }
      }
      if (over.empty()) return any;
      for (const std::size_t t : over) end_[t] = now_;
    }
  }

  bool is_busy(std::size_t r, int side) const {
    return std::ranges::any_of(running_, [&](const Running& f) {
      return f.flows() && std::ranges::any_of(f.demand->used(), [&](const Share& s) {
               return index(s.resource) == r && s.side == side;
             });
    });
  }
  double cost(const Share& s) const {
    const std::size_t r = index(s.resource);
    double c = is_busy(r, 0) && is_busy(r, 1) ? resources_[r].mixed_cost[s.side] : 1;
    if (s.side == 1 && resources_[r].burst.value() > 0 && burst_[r] <= 0)
      c *= resources_[r].tired_cost;
    return c;
  }
  static double pull(const Running& f) {
    return f.demand->weight * f.demand->alone.value() / f.demand->amount;
  }

  void set_speeds() {
    for (Running& f : running_) f.is_fixed = !f.flows(), f.speed = 0;
    for (;;) {
      double level = endless;
      for (const Running& f : running_) {
        if (!f.is_fixed) level = std::min(level, 1 / pull(f));
      }
      if (level == endless) return;
      std::vector<double> full(resources_.size());
      for (std::size_t r = 0; r < full.size(); ++r) full[r] = level_when_full(r);
      for (const double l : full) level = std::min(level, l);
      for (Running& f : running_) {
        if (f.is_fixed) continue;
        bool stops = 1 / pull(f) <= level;
        for (const Share& s : f.demand->used())
          stops |= full[index(s.resource)] <= level * (1 + 1e-14);
        if (!stops) continue;
        f.is_fixed = true;
        f.speed = std::min(1.0, pull(f) * level);
      }
    }
  }
  double level_when_full(std::size_t r) const {
    double room = 1, rise = 0;
    for (const Running& f : running_) {
      for (const Share& s : f.demand->used()) {
        if (index(s.resource) != r || !f.flows()) continue;
        (f.is_fixed ? room : rise) += (f.is_fixed ? -f.speed : pull(f)) * s.fraction * cost(s);
      }
    }
    return rise > 0 ? std::max(room, 0.0) / rise : endless;
  }

  // Seconds of full-rate work that side 1 does per second.
  double writing(std::size_t r) const {
    double rate = 0;
    for (const Running& f : running_) {
      for (const Share& s : f.demand->used()) {
        if (f.flows() && index(s.resource) == r && s.side == 1) rate += s.fraction * f.speed;
      }
    }
    return rate;
  }

  double next_event() const {
    double step = endless;
    for (const Running& f : running_) step = std::min(step, f.flows() ? f.left / f.speed : f.wait);
    for (std::size_t r = 0; r < burst_.size(); ++r) {
      const double rate = writing(r);
      if (burst_[r] > 0 && rate > 0) step = std::min(step, burst_[r] / rate);
    }
    return step;
  }

  void advance(double step) {
    now_ += step;
    for (std::size_t r = 0; r < burst_.size(); ++r) {
      const double rate =
          is_busy(r, 1) ? (burst_[r] > 0 ? -writing(r) : 0) : resources_[r].recovery;
      burst_[r] = std::min(burst_[r] + rate * step, resources_[r].burst.value());
      if (burst_[r] < tie) burst_[r] = 0;
    }
    std::vector<Running> rest;
    for (Running f : running_) {
      (f.flows() ? f.left : f.wait) -= f.flows() ? f.speed * step : step;
      if (f.wait <= tie) f.wait = 0;
      if (f.flows() && f.left <= tie) {
        end_[f.task] = now_;
      } else {
        rest.push_back(f);
      }
    }
    running_ = rest;
  }
};

}  // namespace

TextbookRun textbook_run(const Plan& plan, std::span<const Demand> demands,
                         std::span<const Resource> resources) {
  return Textbook(plan, demands, resources).run();
}

}  // namespace tidegate
