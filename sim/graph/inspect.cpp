#include "sim/graph/inspect.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace tidegate {
namespace {

constexpr std::size_t largest_shown = 3;

// Layers that differ in their name only.
struct Group {
  const Layer* layer;
  std::string name;  ///< "block.0 … block.31"
  std::int64_t count;
};

bool is_same(const Layer& a, const Layer& b) {
  return a.kind == b.kind && a.operators.size() == b.operators.size() && a.input == b.input &&
         a.parameters() == b.parameters() && a.saved() == b.saved() &&
         a.forward_flops() == b.forward_flops() && a.backward_flops() == b.backward_flops();
}

std::vector<Group> groups_of(const LayerGraph& graph) {
  std::vector<Group> groups;
  for (const Layer& layer : graph.layers) {
    if (!groups.empty() && is_same(*groups.back().layer, layer)) {
      Group& group = groups.back();
      ++group.count;
      group.name = group.layer->name + " … " + layer.name;
    } else {
      groups.push_back({&layer, layer.name, 1});
    }
  }
  return groups;
}

struct Tensor {
  std::string name;
  Bytes bytes;
};

// The largest saved storages and parameters of a layer, at most three of each.
std::vector<Tensor> largest(std::vector<Tensor> tensors) {
  std::ranges::stable_sort(tensors, std::ranges::greater(), &Tensor::bytes);
  tensors.resize(std::min(tensors.size(), largest_shown));
  return tensors;
}
std::vector<Tensor> largest_saved(const Layer& layer) {
  std::vector<Tensor> tensors;
  std::set<std::int32_t> seen;
  for (const Operator& op : layer.operators) {
    for (const SavedTensor& t : op.saved) {
      if (seen.insert(t.identity).second) tensors.push_back({t.name, t.bytes});
    }
  }
  return largest(std::move(tensors));
}
std::vector<Tensor> largest_parameters(const Layer& layer, DType dtype) {
  std::vector<Tensor> tensors;
  for (const Operator& op : layer.operators) {
    for (const Parameter& p : op.parameters) {
      const double bytes = bytes_per_element(dtype) * static_cast<double>(p.elements);
      tensors.push_back({p.name, Bytes(bytes)});
    }
  }
  return largest(std::move(tensors));
}

// What is kept and what runs again under one way of recomputing.
struct Recompute {
  const char* name;
  Bytes saved;
  Flops extra;
};

std::vector<Recompute> alternatives(const LayerGraph& graph) {
  Recompute core{"attention core", {}, {}}, blocks{"whole blocks", {}, {}};
  for (const Layer& layer : graph.layers) {
    core.saved += layer.saved() - layer.core_saved();
    for (const Kernel& kernel : layer.core_kernels()) core.extra += flops_of(kernel);
    const bool is_block = layer.kind == LayerKind::block;
    blocks.saved += is_block ? layer.input : layer.saved();
    if (is_block) blocks.extra += layer.forward_flops();
  }
  return {{"nothing", graph.saved(), {}}, core, blocks};
}

std::string grouped(std::int64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string network_line(const Network& n) {
  if (n.hidden == 0) return "explicit list of layers";
  std::string text = fmt::format("{} blocks", n.layers);
  if (n.encoder_layers > 0)
    text = fmt::format("{} encoder and {} decoder blocks", n.encoder_layers, n.layers);
  text += fmt::format(", hidden {}, {} heads of {}", n.hidden, n.heads, n.head_dim);
  if (n.kv_heads != n.heads) text += fmt::format(" ({} key-value)", n.kv_heads);
  text += fmt::format(", feed-forward {}{}", n.ffn, n.has_gated_ffn ? " gated" : "");
  if (n.experts > 0) text += fmt::format(", {} of {} experts", n.experts_per_token, n.experts);
  return text + fmt::format(", vocabulary {}{}", n.vocabulary, n.is_tied ? " tied" : "");
}

std::string batch_line(const Workload& w) {
  const bool is_flash =
      w.kernels.flash_attention && w.network.positions != Positions::relative_bias;
  std::string text = fmt::format("{} x {} tokens, {}", w.micro_batch, w.sequence, name_of(w.dtype));
  if (w.explicit_layers.empty()) text += is_flash ? ", flash attention" : ", unfused attention";
  if (w.tensor_parallel > 1) {
    text += fmt::format(", one of {} tensor-parallel ranks{}", w.tensor_parallel,
                        w.sequence_parallel ? " with sequence parallelism" : "");
  }
  return text;
}

double per_token(const LayerGraph& graph, double total) {
  return total / static_cast<double>(std::max<std::int64_t>(graph.tokens, 1));
}

void append_totals(std::string& out, const LayerGraph& graph) {
  const Flops forward(per_token(graph, graph.forward_flops().value()));
  const Flops both(per_token(graph, (graph.forward_flops() + graph.backward_flops()).value()));
  const auto line = [&out](const char* name, const std::string& value) {
    out += fmt::format("  {:<28}{:>20}\n", name, value);
  };
  line("parameters", grouped(graph.parameters));
  if (graph.active_parameters != graph.parameters) {
    line("  used per token", grouped(graph.active_parameters));
  }
  line("forward, per token", to_text(forward));
  line("forward + backward, per token", to_text(both));
  line("saved for backward, per token", to_text(Bytes(per_token(graph, graph.saved().value()))));
  line("saved for backward", to_text(graph.saved()));
}

void append_layers(std::string& out, const std::vector<Group>& groups) {
  std::size_t width = 8;
  // "…" is three bytes and one column; fmt counts columns, size() bytes.
  for (const Group& g : groups) width = std::max(width, g.name.size());
  out += fmt::format("\n  {:<{}}{:>6}{:>18}{:>15}{:>15}{:>12}{:>12}\n", "layer", width + 2, "count",
                     "parameters", "forward", "backward", "saved", "workspace");
  for (const Group& g : groups) {
    out += fmt::format("  {:<{}}{:>6}{:>18}{:>15}{:>15}{:>12}{:>12}\n", g.name, width + 2, g.count,
                       grouped(g.layer->parameters()), to_text(g.layer->forward_flops()),
                       to_text(g.layer->backward_flops()), to_text(g.layer->saved()),
                       to_text(g.layer->workspace));
  }
  out += "  each row states one of `count` equal layers\n";
}

void append_largest(std::string& out, const std::vector<Group>& groups, DType dtype) {
  const auto list = [&out](const char* what, const std::vector<Tensor>& tensors) {
    if (tensors.empty()) return;
    out += fmt::format("    {:<12}", what);
    for (const Tensor& t : tensors) out += fmt::format("{:<36}", t.name + " " + to_text(t.bytes));
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\n";
  };
  out += "\n  largest tensors\n";
  for (const Group& g : groups) {
    out += fmt::format("  {}\n", g.name);
    list("parameters", largest_parameters(*g.layer, dtype));
    list("saved", largest_saved(*g.layer));
  }
}

void append_alternatives(std::string& out, const LayerGraph& graph) {
  const double step = (graph.forward_flops() + graph.backward_flops()).value();
  out += fmt::format("\n  {:<20}{:>14}{:>14}{:>12}\n", "recompute", "saved", "extra", "of a step");
  for (const Recompute& r : alternatives(graph)) {
    out += fmt::format("  {:<20}{:>14}{:>14}{:>11.1f}%\n", r.name, to_text(r.saved),
                       to_text(r.extra), step > 0 ? 100 * r.extra.value() / step : 0);
  }
}

nlohmann::ordered_json tensors_json(const std::vector<Tensor>& tensors) {
  auto list = nlohmann::ordered_json::array();
  for (const Tensor& t : tensors) list.push_back({{"name", t.name}, {"bytes", t.bytes.value()}});
  return list;
}

nlohmann::ordered_json group_json(const Group& group, DType dtype) {
  const Layer& layer = *group.layer;
  nlohmann::ordered_json json;
  json["name"] = layer.name;
  json["count"] = group.count;
  json["parameters"] = layer.parameters();
  json["forward_flops"] = layer.forward_flops().value();
  json["backward_flops"] = layer.backward_flops().value();
  json["saved_bytes"] = layer.saved().value();
  json["input_bytes"] = layer.input.value();
  json["workspace_bytes"] = layer.workspace.value();
  json["largest_parameters"] = tensors_json(largest_parameters(layer, dtype));
  json["largest_saved"] = tensors_json(largest_saved(layer));
  return json;
}

}  // namespace

std::string inspect_text(const Workload& workload) {
  const LayerGraph graph = build_graph(workload);
  const std::vector<Group> groups = groups_of(graph);
  const std::string& name = workload.network.name;
  std::string out =
      (name.empty() ? "workload" : name) + ": " + network_line(workload.network) + "\n";
  out += "  " + batch_line(workload) + "\n\n";
  append_totals(out, graph);
  append_layers(out, groups);
  append_largest(out, groups, graph.dtype);
  append_alternatives(out, graph);
  return out;
}

std::string inspect_json(const Workload& workload) {
  const LayerGraph graph = build_graph(workload);
  const double forward = graph.forward_flops().value(), backward = graph.backward_flops().value();
  nlohmann::ordered_json json;
  json["name"] = workload.network.name;
  json["tokens"] = graph.tokens;
  json["tensor_parallel"] = workload.tensor_parallel;
  json["parameters"] = graph.parameters;
  json["active_parameters"] = graph.active_parameters;
  json["forward_flops_per_token"] = per_token(graph, forward);
  json["forward_backward_flops_per_token"] = per_token(graph, forward + backward);
  json["saved_bytes_per_token"] = per_token(graph, graph.saved().value());
  json["saved_bytes"] = graph.saved().value();
  json["layers"] = nlohmann::ordered_json::array();
  for (const Group& group : groups_of(graph))
    json["layers"].push_back(group_json(group, graph.dtype));
  json["recompute"] = nlohmann::ordered_json::array();
  for (const Recompute& r : alternatives(graph)) {
    json["recompute"].push_back(
        {{"what", r.name}, {"saved_bytes", r.saved.value()}, {"extra_flops", r.extra.value()}});
  }
  return json.dump(2) + "\n";
}

}  // namespace tidegate
