#include "sim/plan/check.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/core.h>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/depth_first_search.hpp>

namespace tidegate {
namespace {

using Graph = boost::compressed_sparse_row_graph<boost::directedS>;
using Number = std::uint32_t;
constexpr Number none = std::numeric_limits<Number>::max();

// The last task before each on its lane, or none.
std::vector<Number> lane_predecessors(const Plan& plan) {
  std::vector<Number> before(plan.size()), last(plan.lanes.size(), none);
  for (Number t = 0; t < plan.size(); ++t) {
    Number& tail = last[index(plan.tasks[t].lane)];
    before[t] = tail;
    tail = t;
  }
  return before;
}

// Edges lead from a task to what it waits for.
Graph graph_of(const Plan& plan, const std::vector<Number>& lane_before) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  edges.reserve(plan.after_list.size() + plan.size());
  for (Number t = 0; t < plan.size(); ++t) {
    for (const TaskId before : plan.after(static_cast<TaskId>(t)))
      edges.emplace_back(t, index(before));
    if (lane_before[t] != none) edges.emplace_back(t, lane_before[t]);
  }
  return Graph(boost::edges_are_sorted, edges.begin(), edges.end(), plan.size());
}

// Numbers the tasks so that what a task waits for has lower numbers, and remembers one edge of a
// cycle.
struct Depth : boost::default_dfs_visitor {
  std::vector<Number>* position;
  std::optional<std::pair<std::size_t, std::size_t>>* cycle;
  Number* next;
  void back_edge(auto edge, const Graph& g) { *cycle = {source(edge, g), target(edge, g)}; }
  void finish_vertex(std::size_t v, const Graph&) { (*position)[v] = (*next)++; }
};

class Check {
 public:
  explicit Check(const Plan& plan) : plan_(plan), lane_before_(lane_predecessors(plan)) {}

  std::vector<std::string> faults() {
    if (check_references()) {
      const bool is_acyclic = check_cycles();
      check_buffers(is_acyclic);
      check_tokens();
      check_locks();
      check_marks();
    }
    return std::move(faults_);
  }

 private:
  struct Life {
    std::optional<Number> allocated, freed;
  };

  const Plan& plan_;
  std::vector<Number> lane_before_;
  std::vector<Number> position_;  // in an order that respects dependencies and lanes
  std::vector<Number> seen_;      // by task: the last search that visited it
  std::vector<Number> stack_;
  Number search_ = 0;
  std::vector<std::string> faults_;

  std::string name(Number t) const {
    return fmt::format("task {} '{}'", t, plan_.label(static_cast<TaskId>(t)));
  }
  template <class... Args>
  void fault(fmt::format_string<Args...> text, Args&&... args) {
    faults_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  template <class Visit>
  void each_effect(Visit&& visit) const {
    for (Number t = 0; t < plan_.size(); ++t) {
      for (const Effect& effect : plan_.effects(static_cast<TaskId>(t))) visit(t, effect);
    }
  }

  std::size_t targets(Effect::Kind kind) const {
    switch (kind) {
      case Effect::Kind::allocate:
      case Effect::Kind::free:
        return plan_.buffers.size();
      case Effect::Kind::acquire:
      case Effect::Kind::release:
        return plan_.tokens.size();
      case Effect::Kind::lock:
        return plan_.locks.size();
      case Effect::Kind::decide:
        return plan_.choices.size();
    }
    return 0;
  }
  // The other checks follow these references.
  bool check_references() {
    for (Number t = 0; t < plan_.size(); ++t) {
      const Task& task = plan_.tasks[t];
      const bool has_name = index(task.name) < plan_.names.size();
      if (!has_name) fault("task {} has no name", t);
      if (index(task.work) >= plan_.works.size()) fault("task {} has no work", t);
      if (index(task.lane) >= plan_.lanes.size()) fault("task {} has no lane", t);
      for (const TaskId before : plan_.after(static_cast<TaskId>(t))) {
        if (index(before) >= plan_.size())
          fault("task {} comes after a task that does not exist", t);
      }
    }
    each_effect([&](Number t, const Effect& e) {
      if (e.target >= targets(e.kind))
        fault("task {} names a buffer, tokens or a lock that does not exist", t);
    });
    for (const Mark& mark : plan_.marks) {
      if (index(mark.task) >= plan_.size())
        fault("a mark names task {}, which does not exist", index(mark.task));
    }
    for (const Buffer& b : plan_.buffers) {
      if (index(b.pool) >= plan_.pools.size() || index(b.owner) >= plan_.owners.size()) {
        fault("a buffer has no pool or no owner");
      }
    }
    return faults_.empty();
  }

  bool check_cycles() {
    const Graph graph = graph_of(plan_, lane_before_);
    position_.resize(plan_.size());
    std::optional<std::pair<std::size_t, std::size_t>> cycle;
    Number next = 0;
    Depth depth;
    depth.position = &position_, depth.cycle = &cycle, depth.next = &next;
    std::vector<boost::default_color_type> colours(plan_.size());
    const auto map =
        boost::make_iterator_property_map(colours.begin(), get(boost::vertex_index, graph));
    depth_first_search(graph, depth, map);
    if (!cycle) return true;
    fault("{} waits for {}, which waits for it, by dependencies and the order of lanes",
          name(static_cast<Number>(cycle->first)), name(static_cast<Number>(cycle->second)));
    return false;
  }

  void check_buffers(bool is_acyclic) {
    std::vector<Life> lives(plan_.buffers.size());
    each_effect([&](Number t, const Effect& e) {
      const bool frees = e.kind == Effect::Kind::free;
      if (e.kind != Effect::Kind::allocate && !frees) return;
      std::optional<Number>& once = frees ? lives[e.target].freed : lives[e.target].allocated;
      if (once)
        fault("{} {} buffer {}, as did {}", name(t), frees ? "frees" : "allocates", e.target,
              name(*once));
      once = t;
    });
    seen_.assign(plan_.size(), none);
    for (std::size_t b = 0; b < lives.size(); ++b) check_life(b, lives[b], is_acyclic);
  }
  void check_life(std::size_t buffer, const Life& life, bool is_acyclic) {
    if (!life.allocated && !life.freed) {
      fault("buffer {} is never allocated", buffer);
    } else if (!life.freed) {
      fault("{} allocates buffer {}, which is never freed", name(*life.allocated), buffer);
    } else if (!life.allocated) {
      fault("{} frees buffer {}, which is never allocated", name(*life.freed), buffer);
    } else if (is_acyclic && !comes_after(*life.freed, *life.allocated)) {
      fault("{} frees buffer {} without waiting for its allocation by {}", name(*life.freed),
            buffer, name(*life.allocated));
    }
  }

  // Is there a path from `task` back to `before`? A task of the same lane at or after `before` is
  // as good as `before` itself, and nothing that comes before it in the order can lead to it.
  bool comes_after(Number task, Number before) {
    const Number search = search_++;
    const LaneId lane = plan_.tasks[before].lane;
    stack_.assign(1, task);
    while (!stack_.empty()) {
      const Number t = stack_.back();
      stack_.pop_back();
      if (position_[t] < position_[before] || seen_[t] == search) continue;
      if (plan_.tasks[t].lane == lane && t >= before) return true;
      seen_[t] = search;
      if (lane_before_[t] != none) stack_.push_back(lane_before_[t]);
      for (const TaskId p : plan_.after(static_cast<TaskId>(t)))
        stack_.push_back(static_cast<Number>(p));
    }
    return false;
  }

  void check_tokens() {
    std::vector<std::int64_t> taken(plan_.tokens.size()), given(plan_.tokens.size());
    std::map<std::pair<Number, Number>, std::int64_t> at_once;
    each_effect([&](Number t, const Effect& e) {
      if (e.kind != Effect::Kind::acquire && e.kind != Effect::Kind::release) return;
      if (e.count <= 0) fault("{} takes or gives back {} tokens", name(t), e.count);
      (e.kind == Effect::Kind::acquire ? taken : given)[e.target] += e.count;
      if (e.kind == Effect::Kind::acquire) at_once[{t, e.target}] += e.count;
    });
    for (const auto& [key, count] : at_once) {
      const Tokens& tokens = plan_.tokens[key.second];
      if (count > tokens.count) {
        fault("{} takes {} tokens of {}, of which {} exist", name(key.first), count, tokens.name,
              tokens.count);
      }
    }
    for (std::size_t p = 0; p < taken.size(); ++p) {
      if (taken[p] == given[p]) continue;
      fault("tokens of {} are taken {} times and given back {} times", plan_.tokens[p].name,
            taken[p], given[p]);
    }
  }

  void check_locks() {
    for (Number t = 0; t < plan_.size(); ++t) {
      const auto effects = plan_.effects(static_cast<TaskId>(t));
      const auto is_lock = [](const Effect& e) { return e.kind == Effect::Kind::lock; };
      if (std::ranges::count_if(effects, is_lock) > 1) fault("{} holds two locks", name(t));
    }
  }

  void check_marks() {
    if (plan_.marks.empty()) return;
    std::map<std::pair<std::int32_t, std::int32_t>, std::string> phases;
    for (std::int32_t i = 0; i < plan_.iterations; ++i) {
      for (std::int32_t r = 0; r < plan_.ranks; ++r) phases[{i, r}];
    }
    for (const Mark& mark : plan_.marks) {
      phases[{mark.iteration, mark.rank}] += std::string(" ") + name_of(mark.phase);
    }
    const std::string& expected = phases.begin()->second;
    for (const auto& [key, seen] : phases) {
      if (seen == expected) continue;
      fault("iteration {} of rank {} marks the phases{}, and the first marks{}", key.first,
            key.second, seen.empty() ? " none" : seen, expected.empty() ? " none" : expected);
    }
  }
};

}  // namespace

std::vector<std::string> faults(const Plan& plan) { return Check(plan).faults(); }

}  // namespace tidegate
