#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "calib/cluster/nodes.hpp"

/// The rows of several nodes, row by row. For calib/cluster alone.
namespace tidegate::calib {

struct NodeRow {
  std::size_t node = 0;
  std::vector<double> blocks;  ///< values, in the order of passes; at least one
  double value() const;        ///< their median
};
struct Seen {
  Unit unit = Unit::bytes_per_second;
  Gate gate = Gate::none;
  std::vector<NodeRow> nodes;
};
/// By row, of the nodes that measured it without a fault.
std::map<std::string, Seen> seen_on(const std::vector<NodeMeasurements>& nodes);

}  // namespace tidegate::calib
