#include "validate/train/operators.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/error.hpp"
#include "validate/train/parts.hpp"

namespace tidegate::train {
namespace {

void add_residual(const Site& site, const Tensors&, Flow& flow, Storages&) {
  add_to(flow.stream, flow.branch, site.workload.dtype, site.backend);
  flow.branch.clear();
}

Tensors residual_backward(const Site&, const Tensors&, Flow& flow, const Storages&) {
  flow.branch = flow.stream;
  return {};
}

struct Entry {
  std::string_view name;
  void (*forward)(const Site&, const Tensors&, Flow&, Storages&);
  Tensors (*backward)(const Site&, const Tensors&, Flow&, const Storages&);
};

constexpr std::array entries = {
    Entry{"tokens", embed, embed_backward},
    Entry{"norm", norm_stream, norm_stream_backward},
    Entry{"attention_norm", norm_branch, norm_branch_backward},
    Entry{"qkv", qkv, qkv_backward},
    Entry{"qk_norm", norm_heads, norm_heads_backward},
    Entry{"rotary", rotary, rotary_backward},
    Entry{"attention", attention, attention_backward},
    Entry{"output", output, output_backward},
    Entry{"attention_residual", add_residual, residual_backward},
    Entry{"ffn_norm", norm_branch, norm_branch_backward},
    Entry{"ffn_up", ffn_up, ffn_up_backward},
    Entry{"activation", activate, activate_backward},
    Entry{"ffn_down", ffn_down, ffn_down_backward},
    Entry{"ffn_residual", add_residual, residual_backward},
    Entry{"final_norm", norm_branch, norm_branch_backward},
    Entry{"projection", project, project_backward},
    Entry{"loss", loss, loss_backward},
};

const Entry& entry_of(const Operator& op) {
  const auto* entry = std::ranges::find(entries, std::string_view(op.name), &Entry::name);
  ensure(entry != entries.end(), "an operator of a supported workload");
  return *entry;
}

std::int64_t width_of(const SavedTensor& t) {
  return static_cast<std::int64_t>(t.bytes.value()) / t.elements;
}

}  // namespace

const SavedTensor* Site::find(std::string_view name) const {
  const auto at = std::ranges::find(op.saved, name, &SavedTensor::name);
  return at == op.saved.end() ? nullptr : &*at;
}

void Site::save(Storages& storages, std::string_view name, std::span<const float> values) const {
  const SavedTensor* tensor = find(name);
  ensure(tensor != nullptr, "an operator saves what the graph lists");
  std::vector<std::byte>& bytes = storages[tensor->identity];
  bytes = encode(values, width_of(*tensor), workload.dtype);
  ensure(static_cast<double>(bytes.size()) == tensor->bytes.value(),
         "a saved tensor has the bytes that the graph counts");
}

Values Site::saved(const Storages& storages, std::string_view name) const {
  const SavedTensor* tensor = find(name);
  ensure(tensor != nullptr && storages.contains(tensor->identity),
         "backward reads what its operator saved");
  return decode(storages.at(tensor->identity), width_of(*tensor), workload.dtype);
}

bool Site::has(const Storages& storages, std::string_view name) const {
  const SavedTensor* tensor = find(name);
  return tensor != nullptr && storages.contains(tensor->identity);
}

void forward(const Site& site, const Tensors& parameters, Flow& flow, Storages& storages) {
  entry_of(site.op).forward(site, parameters, flow, storages);
}

Tensors backward(const Site& site, const Tensors& parameters, Flow& flow,
                 const Storages& storages) {
  return entry_of(site.op).backward(site, parameters, flow, storages);
}

namespace {

// What operators save, as sim/graph names it. Of a ReLU the output does as its input.
struct Entering {
  std::string_view name;
  Values Flow::* at;
  bool is_made = false;  // by the operator that saves it
};
constexpr std::array enterings = {
    Entering{"qkv_input", &Flow::branch},
    Entering{"q", &Flow::q, true},
    Entering{"k", &Flow::k, true},
    Entering{"v", &Flow::v, true},
    Entering{"projection_input", &Flow::branch},
    Entering{"ffn_input", &Flow::branch},
    Entering{"activation_input", &Flow::up},
    Entering{"activation_output", &Flow::up, true},
    Entering{"gate_activation", &Flow::gate, true},
    Entering{"gate", &Flow::gate},
    Entering{"up", &Flow::up},
    Entering{"down_input", &Flow::branch},
};

bool is_input_of_norm(const Site& site, const SavedTensor& t) {
  return site.op.name.ends_with("norm") && t.name.ends_with("_input");
}

}  // namespace

bool resume(const Site& site, Flow& flow, const Storages& storages) {
  for (const Entering& e : enterings) {
    if (site.has(storages, e.name)) flow.*e.at = site.saved(storages, e.name);
  }
  for (const SavedTensor& t : site.op.saved) {
    if (is_input_of_norm(site, t) && site.has(storages, t.name))
      flow.stream = site.saved(storages, t.name);
  }
  const bool is_made = site.has(storages, "q") && !site.op.is_attention_core;
  if (is_made) flow.branch.clear();
  return is_made;
}

void keep(const Site& site, const Flow& flow, Storages& storages) {
  for (const Entering& e : enterings) {
    if (site.saves(e.name) && !e.is_made) site.save(storages, e.name, flow.*e.at);
  }
  for (const SavedTensor& t : site.op.saved) {
    if (is_input_of_norm(site, t)) site.save(storages, t.name, flow.stream);
  }
}

void add_to(Values& to, std::span<const float> from, DType type, const Backend& backend) {
  if (!to.empty()) return backend.add(to, from, type);
  to.assign(from.begin(), from.end());
  round_all(to, type);
}

Values linear(const Site& site, const Tensors& tensors, std::size_t first, bool has_bias,
              std::span<const float> x, std::int64_t in, std::int64_t out) {
  const LinearShape shape{.rows = site.rows(), .in = in, .out = out};
  const DType type = site.workload.dtype;
  Values y = site.backend.times_transposed(x, tensors.at(first), shape, type);
  if (has_bias) {
    site.backend.add_to_rows(y, tensors.at(first + 1), type);
  } else {
    site.backend.round(y, type);
  }
  return y;
}

void linear_backward(const Site& site, const Tensors& tensors, std::size_t first, bool has_bias,
                     std::span<const float> dy, std::span<const float> x, std::int64_t in,
                     std::int64_t out, Values& dx, Tensors& gradients) {
  if (dx.empty()) dx.resize(static_cast<std::size_t>(site.rows() * in));
  const LinearShape shape{.rows = site.rows(), .in = in, .out = out};
  const DType type = site.workload.dtype;
  site.backend.add_input_gradient(dy, tensors.at(first), shape, type, dx);
  gradients.push_back(site.backend.weight_gradient(dy, x, shape, type));
  if (has_bias) gradients.push_back(site.backend.column_sums(dy, out));
}

Values columns(std::span<const float> values, std::int64_t all, std::int64_t from,
               std::int64_t width) {
  Values part;
  const auto step = static_cast<std::size_t>(all);
  for (std::size_t at = 0; at < values.size(); at += step) {
    const auto row = values.subspan(at + static_cast<std::size_t>(from));
    part.insert(part.end(), row.begin(), row.begin() + width);
  }
  return part;
}

Values side_by_side(std::span<const float> left, std::int64_t left_width,
                    std::span<const float> right, std::int64_t right_width) {
  Values all;
  const auto rows = static_cast<std::int64_t>(left.size()) / left_width;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto l = left.begin() + r * left_width, s = right.begin() + r * right_width;
    all.insert(all.end(), l, l + left_width);
    all.insert(all.end(), s, s + right_width);
  }
  return all;
}

std::string unsupported(const Workload& w) {
  const Network& n = w.network;
  const KernelOptions& k = w.kernels;
  if (!w.explicit_layers.empty()) return "layers with sizes alone have no arithmetic";
  if (n.family != Family::decoder) return "only decoders have an arithmetic";
  if (w.tensor_parallel > 1) return "a tensor-parallel rank runs a part of each operator";
  if (n.experts > 0) return "experts have no arithmetic";
  if (n.positions == Positions::alibi || n.positions == Positions::relative_bias)
    return "positions are none, learned or rotary";
  if (k.attention_dropout > 0 || k.hidden_dropout > 0) return "dropout has no arithmetic";
  if (n.is_post_norm || n.is_parallel_residual) return "norms stand before their sublayers";
  if (n.token_types > 0 || n.head != Head::language_model) return "the head is a language model's";
  if (k.fused_cross_entropy) return "a loss fused with its projection has no arithmetic";
  // The down projection's own list lacks what it makes its input from again.
  if (k.fused_activation) return "a fused activation keeps nothing for the down projection";
  if (w.dtype == DType::fp8) return "fp8 has no arithmetic";
  return "";
}

}  // namespace tidegate::train
