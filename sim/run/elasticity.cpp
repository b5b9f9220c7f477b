#include "sim/run/elasticity.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "sim/engine/simulate.hpp"
#include "sim/report/kin.hpp"
#include "sim/run/steady_time.hpp"

namespace tidegate {
namespace {

constexpr double step = 0.01;
constexpr double least_exposed = 0.005;
constexpr std::size_t most_kinds = 8;
// A task that takes this much of a resource while alone runs at the resource's pace.
constexpr double at_its_pace = 0.9;

Demand faster(Demand demand, const std::set<std::size_t>& resources, double factor) {
  const auto is_faster = [&](const Share& s) { return resources.contains(index(s.resource)); };
  double own = 0, others = 0;
  for (const Share& s : demand.used()) {
    double& most = is_faster(s) ? own : others;
    most = std::max(most, s.fraction);
  }
  // Unless something else, as fully used, holds it back.
  const bool follows = own >= at_its_pace && others < at_its_pace;
  const double sooner = !follows ? 1 : others > 0 ? std::min(factor, 1 / others) : factor;
  for (std::size_t i = 0; i < demand.share_count; ++i) {
    Share& share = demand.shares[i];
    share.fraction = std::min(1.0, share.fraction * (is_faster(share) ? sooner / factor : sooner));
  }
  demand.alone /= sooner;
  return demand;
}

std::vector<Demand> faster(const std::vector<Demand>& demands, const Kin& kin, double factor) {
  const std::set<std::size_t> resources(kin.members.begin(), kin.members.end());
  std::vector<Demand> result;
  for (const Demand& d : demands) result.push_back(faster(d, resources, factor));
  return result;
}

// Of every kind of resource that a report finds exposed.
std::vector<Report::Elasticity> elasticities(const Prediction& p,
                                             const std::vector<Demand>& demands,
                                             const Report& report) {
  const double now = report.iteration_time.value();
  std::vector<Report::Elasticity> found;
  for (const Kin& kin : kin_of(report.resources)) {
    if (kin.exposed.value() < least_exposed * now || found.size() == most_kinds) continue;
    const Seconds then = steady_time(p.plan, faster(demands, kin, 1 + step), p.resources);
    found.push_back({kin.name, (now / then.value() - 1) / step});
  }
  return found;
}

const Report::Elasticity* largest(const std::vector<Report::Elasticity>& list) {
  const auto at = std::ranges::max_element(list, {}, &Report::Elasticity::value);
  return at == list.end() || at->value <= 0 ? nullptr : &*at;
}

std::optional<Report::Doubled> doubled(const Prediction& p) {
  const Report::Elasticity* binding = largest(p.report.elasticities);
  if (binding == nullptr) return std::nullopt;
  const std::vector<Kin> all = kin_of(p.report.resources);
  const Kin& kin = *std::ranges::find(all, binding->name, &Kin::name);
  const std::vector<Demand> demands = faster(p.demands, kin, 2);
  const Timeline timeline = simulate(p.plan, demands, p.resources);
  const Report then = summarize(p.plan, timeline, demands, p.resources, p.report.facts);
  Report::Doubled result{.name = kin.name, .iteration_time = then.iteration_time};
  const std::vector<Report::Elasticity> next = elasticities(p, demands, then);
  if (const Report::Elasticity* e = largest(next)) result.next = *e;
  return result;
}

}  // namespace

void add_elasticities(Prediction& prediction) {
  prediction.report.elasticities = elasticities(prediction, prediction.demands, prediction.report);
  prediction.report.doubled = doubled(prediction);
}

}  // namespace tidegate
