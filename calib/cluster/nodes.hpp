#pragma once

#include <string>
#include <vector>

#include "calib/measure/protocol.hpp"
#include "calib/node/node.hpp"

/// What several nodes measured, side by side.
namespace tidegate::calib {

struct NodeMeasurements {
  std::string id;
  Measurements measurements;
};

/// The blocks of all nodes in one: the median is that of a typical node, the spread holds what
/// nodes differ by. Rows that only some nodes have stay. Canaries are named after their node.
Measurements pooled(const std::vector<NodeMeasurements>& nodes);

/// A node that is slower than the rest at one row.
struct Outlier {
  std::string node, row;
  double value = 0, typical = 0;
  const char* unit = "";
  double factor = 1;  ///< how many times slower
};
/// Slower than the others (their median) by more than 5 % and by more than noise makes in one
/// cluster of a thousand; the worst first. A node is fast at times and slow at seconds.
///
///   t = log(slowness) / scale,   p by Student's distribution, one-sided, times nodes and rows
///   (Bonferroni); slow: p < 0.001
///
/// scale is the larger of what blocks of a node deviate by, which two passes tell, and what the
/// other nodes differ by, which three others tell (it holds what no pass shows: that equal nodes
/// are not quite equal). Both are drawn towards those of all rows of the kind
/// (calib/fit/noise.hpp). With fewer than two passes and fewer than four nodes no node is called
/// slow.
std::vector<Outlier> outliers(const std::vector<NodeMeasurements>& nodes);
/// Why no node could be called slow, were one; empty where that can be told.
std::string why_not_judged(const std::vector<NodeMeasurements>& nodes);

/// Least, middle and most over the nodes, row by row; rows that one node alone has are left out.
std::vector<NodeSpread> spreads(const std::vector<NodeMeasurements>& nodes);
/// The slow nodes with their worst rows in words.
std::vector<SlowNode> slow_nodes(const std::vector<Outlier>& all);

/// "node 3f2a… is slow: fma 1.98 times (…)", a line per node with its worst rows; empty when none
/// is.
std::string outlier_text(const std::vector<Outlier>& all);

}  // namespace tidegate::calib
