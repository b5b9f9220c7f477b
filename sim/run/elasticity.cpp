#include "sim/run/elasticity.hpp"

#include <algorithm>
#include <set>

#include "sim/report/kin.hpp"
#include "sim/run/steady_time.hpp"

namespace tidegate {
namespace {

constexpr double step = 0.01;
constexpr double least_exposed = 0.005;
constexpr std::size_t most_kinds = 8;
// A task that takes this much of a resource while alone runs at the resource's pace.
constexpr double at_its_pace = 0.9;

Demand faster(Demand demand, const std::set<std::size_t>& resources) {
  const auto is_faster = [&](const Share& s) { return resources.contains(index(s.resource)); };
  bool follows = false;
  for (const Share& s : demand.used()) follows |= is_faster(s) && s.fraction >= at_its_pace;
  // Unless something else, as fully used, holds it back.
  for (const Share& s : demand.used()) follows &= is_faster(s) || s.fraction < at_its_pace;
  for (std::size_t i = 0; i < demand.share_count; ++i) {
    Share& share = demand.shares[i];
    if (follows && !is_faster(share)) share.fraction = std::min(1.0, share.fraction * (1 + step));
    if (!follows && is_faster(share)) share.fraction /= 1 + step;
  }
  if (follows) demand.alone /= 1 + step;
  return demand;
}

}  // namespace

void add_elasticities(Prediction& prediction) {
  const Report& report = prediction.report;
  const double now = report.iteration_time.value();
  std::vector<Report::Elasticity> found;
  for (const Kin& kin : kin_of(report.resources)) {
    if (kin.exposed.value() < least_exposed * now || found.size() == most_kinds) continue;
    const std::set<std::size_t> resources(kin.members.begin(), kin.members.end());
    std::vector<Demand> demands;
    for (const Demand& d : prediction.demands) demands.push_back(faster(d, resources));
    const double then = steady_time(prediction.plan, demands, prediction.resources).value();
    found.push_back({kin.name, (now / then - 1) / step});
  }
  prediction.report.elasticities = std::move(found);
}

}  // namespace tidegate
