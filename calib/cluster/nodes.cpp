#include "calib/cluster/nodes.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "calib/cluster/seen.hpp"
#include "calib/node/estimate.hpp"

namespace tidegate::calib {

double NodeRow::value() const { return median(blocks); }

std::map<std::string, Seen> seen_on(const std::vector<NodeMeasurements>& nodes) {
  std::map<std::string, Seen> rows;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const RowResult& row : nodes[n].measurements.rows) {
      std::vector<double> blocks = block_values(row);
      if (!row.faults.empty() || blocks.empty()) continue;
      Seen& seen =
          rows.try_emplace(row.row.id(), Seen{row.row.unit, row.row.gate, {}}).first->second;
      seen.nodes.push_back({n, std::move(blocks)});
    }
  }
  return rows;
}

Measurements pooled(const std::vector<NodeMeasurements>& nodes) {
  Measurements all;
  all.is_complete = true;
  for (const NodeMeasurements& node : nodes) {
    const Measurements& own = node.measurements;
    for (const RowResult& row : own.rows) {
      const std::string id = row.row.id();
      auto at =
          std::ranges::find_if(all.rows, [&id](const RowResult& r) { return r.row.id() == id; });
      if (at == all.rows.end()) {
        all.rows.push_back(row);
        continue;
      }
      at->blocks.insert(at->blocks.end(), row.blocks.begin(), row.blocks.end());
      for (const std::string& fault : row.faults) at->faults.push_back(node.id + ": " + fault);
    }
    for (Canary canary : own.canaries) {
      canary.name = node.id + "." + canary.name;  // the drift is each node's own
      all.canaries.push_back(std::move(canary));
    }
    all.passes = std::max(all.passes, own.passes);
    all.accepted += own.accepted;
    all.rejected += own.rejected;
    all.seconds = std::max(all.seconds, own.seconds);
    all.is_complete = all.is_complete && own.is_complete;
  }
  return all;
}

std::vector<NodeSpread> spreads(const std::vector<NodeMeasurements>& nodes) {
  std::vector<NodeSpread> all;
  for (const auto& [id, seen] : seen_on(nodes)) {
    if (seen.nodes.size() < 2) continue;
    std::vector<double> values;
    for (const NodeRow& node : seen.nodes) values.push_back(node.value());
    all.push_back({id, name_of(seen.unit), std::ranges::min(values), median(values),
                   std::ranges::max(values)});
  }
  return all;
}

std::vector<SlowNode> slow_nodes(const std::vector<Outlier>& all) {
  std::vector<SlowNode> slow;
  for (const Outlier& o : all) {
    const std::string words = fmt::format("{} {:.2f} times slower", o.row, o.factor);
    const auto known = std::ranges::find(slow, o.node, &SlowNode::node);
    if (known == slow.end()) {
      slow.push_back({o.node, words});
    } else if (std::ranges::count(known->evidence, ';') < 4) {
      known->evidence += "; " + words;
    }
  }
  return slow;
}

std::string outlier_text(const std::vector<Outlier>& all) {
  std::vector<std::string> names;
  for (const Outlier& o : all) {
    if (std::ranges::find(names, o.node) == names.end()) names.push_back(o.node);
  }
  std::string text;
  constexpr std::size_t shown = 5;
  for (const std::string& name : names) {
    std::size_t count = 0;
    text += "  " + name + " is slow at\n";
    for (const Outlier& o : all) {
      if (o.node != name || ++count > shown) continue;
      text += fmt::format("    {:44} {:.4g} against {:.4g} {} ({:.2f} times slower)\n", o.row,
                          o.value, o.typical, o.unit, o.factor);
    }
    if (count > shown) text += fmt::format("    and {} more\n", count - shown);
  }
  return text;
}

}  // namespace tidegate::calib
