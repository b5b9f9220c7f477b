#pragma once

#include <vector>

#include "models/base/yaml.hpp"
#include "sim/graph/layer_graph.hpp"

namespace tidegate {

/// The `layers:` list of a workload (its form: read_workload in workload.hpp), in an order that
/// respects every `after`; among layers that are ready, the file's order holds. Unknown names,
/// repeated names and cycles are problems of the document; then the file's order comes back.
std::vector<Layer> read_layers(const yaml::Node& node, DType dtype);

}  // namespace tidegate
