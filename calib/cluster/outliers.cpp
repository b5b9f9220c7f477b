#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <fmt/core.h>

#include "calib/cluster/seen.hpp"
#include "calib/fit/noise.hpp"
#include "calib/fit/statistics.hpp"

namespace tidegate::calib {
namespace {

constexpr double least_slowness = 1.05;  // below it a node is not worth a person's afternoon
constexpr double level = 0.001;          // of a false alarm in a whole cluster
constexpr std::size_t least_nodes = 4;   // whose values tell by themselves what nodes differ by
constexpr std::size_t least_blocks = 2;

double log_time(Unit unit, double value) {
  return unit == Unit::seconds ? std::log(value) : -std::log(value);
}

// What the blocks of a node deviate by, of all nodes.
KnownSpread spread_within(const Seen& seen) {
  double squares = 0, freedom = 0;
  for (const NodeRow& node : seen.nodes) {
    double mean = 0;
    const auto n = static_cast<double>(node.blocks.size());
    for (const double v : node.blocks) mean += std::log(v) / n;
    for (const double v : node.blocks) squares += (std::log(v) - mean) * (std::log(v) - mean);
    freedom += n - 1;
  }
  return {freedom > 0 ? std::sqrt(squares / freedom) : 0, freedom};
}

// What nodes differ by. Of five and more by the median deviation, which a second slow node does not
// move: as a standard deviation it has 37 % of the efficiency, and of few it is too small by the
// factor that Croux and Rousseeuw (1992, "Time-efficient algorithms for two highly robust
// estimators of scale") give, n/(n - 0.8) beyond nine.
KnownSpread spread_between(const std::vector<double>& others) {
  const auto n = static_cast<double>(others.size());
  if (others.size() + 1 < least_nodes) return {};
  if (others.size() < 5) {
    double mean = 0, squares = 0;
    for (const double v : others) mean += v / n;
    for (const double v : others) squares += (v - mean) * (v - mean);
    return {std::sqrt(squares / (n - 1)), n - 1};
  }
  constexpr double few[] = {1.206, 1.200, 1.140, 1.129, 1.107};  // 5 to 9
  const double factor = others.size() < 10 ? few[others.size() - 5] : n / (n - 0.8);
  return {factor * spread(others), 0.37 * (n - 1)};
}

// One node at one row, as logarithms of times, so that above is slower.
struct Judged {
  const Seen* seen = nullptr;
  const std::string* row = nullptr;
  std::size_t node = 0;  // place in seen->nodes
  double slower = 0;     // than the median of the others
  std::size_t blocks = 0;
  KnownSpread within, between;  // of nodes' blocks; of the other nodes
};

std::vector<Judged> judged_at(const std::string& row, const Seen& seen) {
  std::vector<double> times;
  std::size_t blocks = seen.nodes.front().blocks.size();
  for (const NodeRow& node : seen.nodes) {
    times.push_back(log_time(seen.unit, node.value()));
    blocks = std::min(blocks, node.blocks.size());
  }
  const KnownSpread within = spread_within(seen);
  std::vector<Judged> all;
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::vector<double> others = times;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    all.push_back(
        {&seen, &row, i, times[i] - median(others), blocks, within, spread_between(others)});
  }
  return all;
}

// Spreads drawn towards those of all rows behind the same gate (calib/fit/noise.hpp), what nodes
// differ by for each node that is left out.
void moderate(std::vector<Judged>& all) {
  using Kind = std::pair<Gate, std::size_t>;
  std::map<Kind, std::vector<KnownSpread>> within, between;
  const auto kind = [](const Judged& j) { return Kind{j.seen->gate, j.seen->nodes[j.node].node}; };
  for (const Judged& j : all) {
    within[kind(j)].push_back(j.within);
    between[kind(j)].push_back(j.between);
  }
  std::map<Kind, std::pair<KnownSpread, KnownSpread>> priors;
  for (const auto& [k, spreads] : within) priors[k] = {prior_of(spreads), prior_of(between[k])};
  for (Judged& j : all) {
    j.within = moderated(j.within, priors[kind(j)].first);
    j.between = moderated(j.between, priors[kind(j)].second);
  }
}

// Of the median of n normal numbers, in parts of theirs: at most sqrt(pi/2n).
double variance_of_median(double n) { return n > 2 ? std::numbers::pi / 2 / n : 1 / n; }

// Of one node's value less the median of the others.
KnownSpread noise_of(const Judged& j) {
  KnownSpread told = j.between;
  if (j.blocks >= least_blocks) {
    const double own =
        j.within.spread * std::sqrt(variance_of_median(static_cast<double>(j.blocks)));
    if (told.freedom <= 0 || own > told.spread) told = {own, j.within.freedom};
  }
  told.spread *= std::sqrt(1 + variance_of_median(static_cast<double>(j.seen->nodes.size() - 1)));
  return told;
}

// Of being so much slower by chance, one-sided.
double chance(const Judged& j) {
  const KnownSpread noise = noise_of(j);
  if (noise.freedom <= 0) return 1;
  if (noise.spread <= 0) return 0;
  return two_sided(j.slower / noise.spread, noise.freedom) / 2;
}

}  // namespace

std::vector<Outlier> outliers(const std::vector<NodeMeasurements>& nodes) {
  const std::map<std::string, Seen> rows = seen_on(nodes);
  std::vector<Judged> all;
  for (const auto& [row, seen] : rows) {
    if (seen.nodes.size() < 2 || seen.unit == Unit::fraction) continue;
    for (Judged& j : judged_at(row, seen)) all.push_back(j);
  }
  moderate(all);
  std::vector<Outlier> found;
  for (const Judged& j : all) {
    if (std::exp(j.slower) <= least_slowness) continue;
    if (static_cast<double>(all.size()) * chance(j) >= level) continue;
    const NodeRow& node = j.seen->nodes[j.node];
    const double faster = j.seen->unit == Unit::seconds ? -j.slower : j.slower;
    found.push_back({nodes[node.node].id, *j.row, node.value(), node.value() * std::exp(faster),
                     name_of(j.seen->unit), std::exp(j.slower)});
  }
  std::ranges::stable_sort(found, std::ranges::greater(), &Outlier::factor);
  return found;
}

std::string why_not_judged(const std::vector<NodeMeasurements>& nodes) {
  if (nodes.size() >= least_nodes) return "";
  for (const auto& [id, seen] : seen_on(nodes)) {
    const auto has_few = [](const NodeRow& node) { return node.blocks.size() < least_blocks; };
    if (seen.nodes.size() > 1 && std::ranges::none_of(seen.nodes, has_few)) return "";
  }
  return fmt::format(
      "one pass on {} nodes does not tell a slow node from noise; give --passes 2 or more",
      nodes.size());
}

}  // namespace tidegate::calib
