#include "sim/policy/optimizers.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include "sim/policy/parameters.hpp"
#include "sim/policy/swapped_optimizer.hpp"

namespace tidegate {
namespace {

// Bytes per second of a path that carries as much out as in: what sub-group swapping asks of it.
double swap_bandwidth(const StoragePath& path) {
  return 2 / (1 / path.read_mixed.value() + 1 / path.write_mixed.value());
}

void read_assignment(yaml::Map& options, const Machine& machine, SwapOptions& o) {
  const auto node = options.find("assignment");
  if (!node || (node->is_scalar() && node->value().text == "proportional")) {
    for (const std::uint16_t p : o.paths) {
      // A node without paths has been reported; any share will do until the document is refused.
      o.shares.push_back(machine.paths().empty() ? 1 : swap_bandwidth(machine.paths()[p]));
    }
    return;
  }
  if (!node->is_map()) return node->problem("write proportional, {modulo: 3} or {shares: [2, 1]}");
  yaml::Map map = node->map();
  if (const auto modulo = map.find("modulo")) {
    o.modulus = modulo->count(1);
    if (o.paths.size() != 2) modulo->problem("needs exactly two paths; use shares for more");
  }
  if (const auto shares = map.find("shares")) {
    if (o.modulus > 0) shares->problem("stands beside modulo; keep one of them");
    for (const yaml::Node& share : shares->items()) o.shares.push_back(share.number(0));
    const double sum = std::accumulate(o.shares.begin(), o.shares.end(), 0.0);
    if (o.shares.size() != o.paths.size() || sum <= 0) {
      shares->problem(
          fmt::format("needs {} numbers, one for each path, not all zero", o.paths.size()));
      o.shares.assign(o.paths.size(), 1);
    }
  }
  if (o.modulus == 0 && o.shares.empty()) {
    node->problem("is empty; write proportional, {modulo: 3} or {shares: [2, 1]}");
    o.shares.assign(o.paths.size(), 1);
  }
}

void read_exclusive(yaml::Map& options, const Machine& machine, SwapOptions& o) {
  const auto node = options.find("exclusive");
  o.is_exclusive.assign(o.paths.size(), true);
  if (!node) return;
  if (node->is_scalar()) {
    o.is_exclusive.assign(o.paths.size(), node->flag());
    return;
  }
  o.is_exclusive.assign(o.paths.size(), false);
  for (const yaml::Node& item : node->items()) {
    const auto path = read_path(item, machine);
    if (!path) continue;
    const auto at = std::ranges::find(o.paths, *path);
    if (at == o.paths.end())
      item.problem("is not among the paths of this policy");
    else
      o.is_exclusive[static_cast<std::size_t>(at - o.paths.begin())] = true;
  }
}

std::string title_of(const SwapOptions& o, const Machine& machine) {
  std::string paths, exclusive;
  for (std::size_t p = 0; p < o.paths.size(); ++p) {
    const std::string& name = machine.paths()[o.paths[p]].name;
    paths += (p == 0 ? "" : ", ") + name;
    if (o.is_exclusive[p]) exclusive += (exclusive.empty() ? ", exclusive " : ", ") + name;
  }
  return fmt::format("MLP-Offload: optimizer on {}{}{}{}, {} a path", paths, exclusive,
                     o.is_cached ? ", cached sub-groups" : "",
                     o.has_delayed_gradients ? ", delayed gradients" : "", buffers_text(o));
}

}  // namespace

std::optional<SwapOptions> read_mlp_offload(yaml::Map& options, const Machine& machine) {
  SwapOptions o;
  bool is_known = true;
  for (const yaml::Node& node : options.at("paths").items()) {
    const auto path = read_path(node, machine);
    is_known = is_known && path.has_value();
    if (!path) continue;
    if (std::ranges::find(o.paths, *path) != o.paths.end())
      node.problem("is listed twice");
    else
      o.paths.push_back(*path);
  }
  if (!is_known) {
    // What else is said of paths would be said of the wrong ones.
    options.ignore_rest();
    return std::nullopt;
  }
  if (o.paths.empty()) {
    if (options.has("paths")) options.at("paths").problem("names no path; one is needed at least");
    o.paths = {0};
  }
  read_assignment(options, machine, o);
  read_exclusive(options, machine, o);
  o.is_cached = options.flag_or("cache", true);
  o.has_delayed_gradients = options.flag_or("delayed_gradients", true);
  o.is_upload_async = options.flag_or("async_upload", true);
  read_swap_options(options, o);
  o.title = title_of(o, machine);
  return o;
}

std::unique_ptr<OptimizerPolicy> make_mlp_offload(yaml::Map& options, const Machine& machine) {
  auto o = read_mlp_offload(options, machine);
  return o ? swapped_optimizer(std::move(*o)) : nullptr;
}

}  // namespace tidegate
