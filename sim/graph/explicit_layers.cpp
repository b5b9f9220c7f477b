#include "sim/graph/explicit_layers.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <queue>

#include <fmt/core.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>

namespace tidegate {
namespace {

constexpr std::array<std::string_view, 4> kinds = {"embedding", "block", "head", "other"};

Kernel read_gemm(const yaml::Node& node, DType dtype) {
  yaml::Map map = node.map();
  return Gemm{map.count("m", 1), map.count("n", 1), map.count("k", 1), map.count_or("batch", 1, 1),
              dtype};
}

Kernel read_attention(const yaml::Node& node, DType dtype) {
  yaml::Map map = node.map();
  Attention a{.dtype = dtype};
  a.batch = map.count_or("batch", 1, 1);
  a.heads = map.count("heads", 1);
  a.kv_heads = map.count_or("kv_heads", a.heads, 1);
  a.queries = map.count("queries", 1);
  a.keys = map.count_or("keys", a.queries, 1);
  a.head_dim = map.count("head_dim", 1);
  a.causal = map.flag_or("causal", true);
  a.backward = map.flag_or("backward", false);
  if (a.heads > 1 && a.heads % a.kv_heads != 0) {
    map.at("kv_heads")
        .problem(fmt::format("is {}, which does not divide the {} heads", a.kv_heads, a.heads));
  }
  return a;
}

Kernel read_elementwise(const yaml::Node& node) {
  yaml::Map map = node.map();
  const Bytes bytes = map.quantity<Bytes>("bytes");
  const auto most = std::numeric_limits<std::int32_t>::max();
  const auto launches = map.find("launches");
  return Elementwise{bytes, launches ? static_cast<std::int32_t>(launches->count(1, most)) : 1};
}

std::vector<Kernel> read_kernels(const yaml::Node& node, DType dtype) {
  std::vector<Kernel> kernels;
  for (const yaml::Node& item : node.items()) {
    yaml::Map map = item.map();
    const auto gemm = map.find("gemm"), attention = map.find("attention");
    const auto plain = map.find("elementwise");
    if ((gemm ? 1 : 0) + (attention ? 1 : 0) + (plain ? 1 : 0) != 1 && item.is_map()) {
      item.problem("is not one kernel; write one of gemm, attention, elementwise");
    }
    if (gemm) kernels.push_back(read_gemm(*gemm, dtype));
    if (attention) kernels.push_back(read_attention(*attention, dtype));
    if (plain) kernels.push_back(read_elementwise(*plain));
  }
  return kernels;
}

// Last forward kernel first.
std::vector<Kernel> derived_backward(const std::vector<Kernel>& forward) {
  std::vector<Kernel> backward;
  for (auto kernel = forward.rbegin(); kernel != forward.rend(); ++kernel) {
    if (const auto* g = std::get_if<Gemm>(&*kernel)) {
      backward.push_back(Gemm{g->m, g->k, g->n, g->batch, g->dtype});
      backward.push_back(Gemm{g->k, g->n, g->m, g->batch, g->dtype});
    } else if (const auto* a = std::get_if<Attention>(&*kernel)) {
      backward.push_back(*a);
      std::get<Attention>(backward.back()).backward = true;
    } else if (const auto* e = std::get_if<Elementwise>(&*kernel)) {
      backward.push_back(Elementwise{2 * e->bytes, e->launches});
    }
  }
  return backward;
}

// Sums of a thousand such counts are exact.
constexpr std::int64_t most_elements = 1'000'000'000'000'000;

std::vector<Parameter> read_parameters(const yaml::Node& node) {
  std::vector<Parameter> parameters;
  if (node.is_scalar()) {
    const std::int64_t elements = node.count(0, most_elements);
    if (elements > 0) parameters.push_back({"weight", elements});
    return parameters;
  }
  for (const yaml::Node& item : node.items()) {
    yaml::Map map = item.map();
    Parameter p{map.text("name"), map.at("elements").count(1, most_elements)};
    p.is_small = map.flag_or("small", false);
    parameters.push_back(std::move(p));
  }
  return parameters;
}

// Elements are taken to be of the stream's type.
std::vector<SavedTensor> read_saved(const yaml::Node& node, DType dtype, std::int32_t& storages) {
  std::vector<SavedTensor> saved;
  for (const yaml::Node& item : node.items()) {
    yaml::Map map = item.map();
    const auto bytes = map.quantity<Bytes>("bytes");
    const std::string name = map.text("name");
    const auto elements = static_cast<std::int64_t>(bytes.value() / bytes_per_element(dtype));
    saved.push_back({name, bytes, ++storages, elements});
  }
  return saved;
}

// The keys of one operator; a layer with a single operator carries them itself.
Operator read_operator(yaml::Map& map, DType dtype, std::int32_t& storages) {
  Operator op;
  op.forward = read_kernels(map.at("forward"), dtype);
  const auto backward = map.find("backward");
  op.backward = backward ? read_kernels(*backward, dtype) : derived_backward(op.forward);
  if (const auto parameters = map.find("parameters")) op.parameters = read_parameters(*parameters);
  if (const auto saved = map.find("saved")) op.saved = read_saved(*saved, dtype, storages);
  op.is_attention_core = map.flag_or("attention_core", false);
  op.active_fraction = map.fraction_or("active_fraction", 1);
  return op;
}

Layer read_layer(const yaml::Node& node, DType dtype) {
  Layer layer;
  std::int32_t storages = 0;
  yaml::Map map = node.map();
  layer.name = map.text("name");
  layer.kind = static_cast<LayerKind>(
      map.choice_or("kind", kinds, static_cast<std::size_t>(LayerKind::block)));
  map.has("after");  // read by read_edges
  if (const auto operators = map.find("operators")) {
    for (const yaml::Node& item : operators->items()) {
      yaml::Map one = item.map();
      const std::string name = one.text("name");
      layer.operators.push_back(read_operator(one, dtype, storages));
      layer.operators.back().name = name;
    }
    if (operators->is_sequence() && operators->items().empty()) {
      operators->problem("is empty; list one operator at least, or give the layer's own kernels");
    }
  } else {
    layer.operators.push_back(read_operator(map, dtype, storages));
    layer.operators.back().name = layer.name;
  }
  layer.input = map.quantity_or("input", Bytes(), yaml::Bound::non_negative);
  layer.workspace = map.quantity_or("workspace", Bytes(), yaml::Bound::non_negative);
  return layer;
}

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS>;

// An edge from each name in `after` to the layer that has it.
Graph read_edges(const std::vector<yaml::Node>& nodes, const std::vector<Layer>& layers) {
  Graph graph(layers.size());
  std::map<std::string, std::size_t> index;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    names.push_back(layers[i].name);
    if (!index.emplace(layers[i].name, i).second && !layers[i].name.empty()) {
      nodes[i].problem(
          fmt::format("is a second layer named '{}'; names must differ", layers[i].name));
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!nodes[i].is_map()) continue;
    yaml::Map map(nodes[i]);
    map.ignore_rest();
    const auto after = map.find("after");
    if (!after) continue;
    for (const yaml::Node& item : after->items()) {
      const std::string name = item.text();
      if (const auto found = index.find(name); found != index.end()) {
        boost::add_edge(found->second, i, graph);
        continue;
      }
      const std::string near = nearest(name, names);
      item.problem(fmt::format("no layer is named '{}'{}", name,
                               near.empty() ? "; give the name of a layer of this list"
                                            : "; did you mean '" + near + "'?"));
    }
  }
  return graph;
}

// Kahn's order with the lowest index first. Shorter than the graph when there is a cycle.
std::vector<std::size_t> order_of(const Graph& graph) {
  const std::size_t count = boost::num_vertices(graph);
  std::vector<std::size_t> waiting(count), order;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t v = 0; v < count; ++v) {
    waiting[v] = boost::in_degree(v, graph);
    if (waiting[v] == 0) ready.push(v);
  }
  while (!ready.empty()) {
    const std::size_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (auto [edge, end] = boost::out_edges(v, graph); edge != end; ++edge) {
      const std::size_t next = boost::target(*edge, graph);
      if (--waiting[next] == 0) ready.push(next);
    }
  }
  return order;
}

// One cycle, "a -> b -> a" in the order in which its layers would run: predecessors are followed
// within a strongly connected component until one repeats.
std::vector<std::size_t> cycle_of(const Graph& graph) {
  std::vector<std::size_t> component(boost::num_vertices(graph));
  boost::strong_components(graph, boost::make_iterator_property_map(
                                      component.begin(), boost::get(boost::vertex_index, graph)));
  const auto predecessor = [&](std::size_t v) {
    for (auto [edge, end] = boost::in_edges(v, graph); edge != end; ++edge) {
      const std::size_t from = boost::source(*edge, graph);
      if (component[from] == component[v]) return from;
    }
    return boost::num_vertices(graph);
  };
  std::size_t at = 0;
  while (predecessor(at) == boost::num_vertices(graph)) ++at;
  std::vector<std::size_t> path;
  while (std::ranges::find(path, at) == path.end()) {
    path.push_back(at);
    at = predecessor(at);
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  path.push_back(at);
  std::ranges::reverse(path);
  return path;
}

}  // namespace

std::vector<Layer> read_layers(const yaml::Node& node, DType dtype) {
  const std::vector<yaml::Node> nodes = node.items();
  if (node.is_sequence() && nodes.empty()) node.problem("is empty; give one layer or more");
  std::vector<Layer> layers;
  for (const yaml::Node& item : nodes) layers.push_back(read_layer(item, dtype));
  const Graph graph = read_edges(nodes, layers);
  const std::vector<std::size_t> order = order_of(graph);
  if (order.size() < layers.size()) {
    std::string text;
    const std::vector<std::size_t> cycle = cycle_of(graph);
    for (const std::size_t i : cycle) text += (text.empty() ? "" : " -> ") + layers[i].name;
    nodes[cycle.front()].problem(fmt::format("waits for itself: {}; remove one 'after'", text));
    return layers;
  }
  std::vector<Layer> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(layers[i]));
  return sorted;
}

}  // namespace tidegate
