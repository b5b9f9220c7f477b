#include "sim/plan/precedence.hpp"

#include <limits>

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/depth_first_search.hpp>

namespace tidegate {
namespace {

using Graph = boost::compressed_sparse_row_graph<boost::directedS>;
using Number = std::uint32_t;
constexpr TaskId none{std::numeric_limits<Number>::max()};

std::vector<TaskId> lane_predecessors(const Plan& plan) {
  std::vector<TaskId> before(plan.size()), last(plan.lanes.size(), none);
  for (Number t = 0; t < plan.size(); ++t) {
    TaskId& tail = last[index(plan.tasks[t].lane)];
    before[t] = tail;
    tail = TaskId{t};
  }
  return before;
}

// Edges lead from a task to what it waits for.
Graph graph_of(const Plan& plan, const std::vector<TaskId>& lane_before) {
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  edges.reserve(plan.after_list.size() + plan.size());
  for (Number t = 0; t < plan.size(); ++t) {
    for (const TaskId before : plan.after(TaskId{t})) edges.emplace_back(t, index(before));
    if (lane_before[t] != none) edges.emplace_back(t, index(lane_before[t]));
  }
  return Graph(boost::edges_are_sorted, edges.begin(), edges.end(), plan.size());
}

// Numbers the tasks so that what a task waits for has lower numbers, and remembers one edge of a
// cycle.
struct Depth : boost::default_dfs_visitor {
  std::vector<Number>* position;
  std::optional<std::pair<TaskId, TaskId>>* cycle;
  Number* next;
  void back_edge(auto edge, const Graph& g) {
    *cycle = {static_cast<TaskId>(source(edge, g)), static_cast<TaskId>(target(edge, g))};
  }
  void finish_vertex(std::size_t v, const Graph&) { (*position)[v] = (*next)++; }
};

}  // namespace

Precedence::Precedence(const Plan& plan)
    : plan_(plan),
      lane_before_(lane_predecessors(plan)),
      position_(plan.size()),
      seen_(plan.size(), std::numeric_limits<Number>::max()) {
  put_in_order();
}

void Precedence::put_in_order() {
  const Graph graph = graph_of(plan_, lane_before_);
  Number next = 0;
  Depth depth;
  depth.position = &position_, depth.cycle = &cycle_, depth.next = &next;
  std::vector<boost::default_color_type> colours(plan_.size());
  const auto map =
      boost::make_iterator_property_map(colours.begin(), get(boost::vertex_index, graph));
  depth_first_search(graph, depth, map);
}

// A task of the same lane at or after `before` is as good as `before` itself, and nothing that
// comes before it in the order can lead to it.
bool Precedence::comes_after(TaskId task, TaskId before) {
  const Number search = search_++;
  const LaneId lane = plan_.task(before).lane;
  stack_.assign(1, task);
  while (!stack_.empty()) {
    const TaskId t = stack_.back();
    stack_.pop_back();
    if (position_[index(t)] < position_[index(before)] || seen_[index(t)] == search) continue;
    if (plan_.task(t).lane == lane && t >= before) return true;
    seen_[index(t)] = search;
    if (lane_before_[index(t)] != none) stack_.push_back(lane_before_[index(t)]);
    const auto after = plan_.after(t);
    stack_.insert(stack_.end(), after.begin(), after.end());
  }
  return false;
}

}  // namespace tidegate
