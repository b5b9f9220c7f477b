#include "validate/compare/suspects.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace tidegate {
namespace {

constexpr double least_deviation = 0.06;
constexpr Instant shortest = 1'000'000'000;  // 1 ms: below, times are those of threads

using Device = std::pair<ResourceId, std::uint8_t>;

// Of equal fractions the side and resource that comes first.
std::optional<Device> dominant(const Demand& demand) {
  const auto used = demand.used();
  if (used.empty()) return std::nullopt;
  const auto most = std::ranges::max_element(used, {}, &Share::fraction);
  return Device{most->resource, most->side};
}

struct Ratio {
  double value = 1, weight = 0;
};

struct Interval {
  Instant from, to;
};
// Length of the union.
double covered(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::from);
  Instant sum = 0, until = 0;
  for (const auto& [from, to] : intervals) {
    sum += std::max<Instant>(0, to - std::max(from, until));
    until = std::max(until, to);
  }
  return static_cast<double>(sum);
}

// What is known of the tasks of one device.
struct Evidence {
  std::vector<Ratio> ratios;
  std::vector<Interval> predicted, measured;

  double busy_ratio() const { return covered(measured) / covered(predicted); }
};

// The value below which `part` of the weight lies, the ratios being sorted.
double quantile(const std::vector<Ratio>& sorted, double part) {
  double all = 0, below = 0;
  for (const Ratio& r : sorted) all += r.weight;
  for (const Ratio& r : sorted) {
    below += r.weight;
    if (below >= part * all) return r.value;
  }
  return sorted.back().value;
}

// Whether a resource has two sides: works of both kinds use it.
bool is_two_sided(std::span<const Demand> demands, ResourceId resource) {
  return std::ranges::any_of(demands, [&](const Demand& demand) {
    return std::ranges::any_of(
        demand.used(), [&](const Share& s) { return s.resource == resource && s.side == 1; });
  });
}

std::string text_of(std::span<const Demand> demands, std::span<const Resource> resources,
                    const Device& device) {
  const auto& [resource, side] = device;
  const std::string& name = resources[index(resource)].name;
  if (!is_two_sided(demands, resource)) return name;
  return name + (side == 0 ? " reads" : " writes");
}

bool is_off(double ratio, double busy_ratio, double spread) {
  const double off = std::log(ratio), busy_off = std::log(busy_ratio);
  const double least = std::log1p(least_deviation);
  return std::abs(off) >= std::max(least, spread) && off * busy_off > 0 &&
         std::abs(busy_off) >= least;
}

Seconds exposed(const Plan& plan, std::span<const Demand> demands,
                std::span<const PathSegment> path, const Device& device) {
  Seconds sum;
  for (const PathSegment& s : path) {
    if (!s.task || s.blame != Blame::resource) continue;
    if (dominant(demands[index(plan.task(*s.task).work)]) == device) sum += s.time();
  }
  return sum;
}

}  // namespace

std::vector<Suspect> find_suspects(const Plan& plan, const Timeline& predicted,
                                   const Timeline& measured, std::span<const Demand> demands,
                                   std::span<const Resource> resources,
                                   std::span<const Instant> lateness,
                                   std::span<const PathSegment> path, double iterations) {
  std::map<Device, Evidence> devices;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    const auto device = dominant(demands[index(plan.tasks[t].work)]);
    const Instant expected = predicted.end[t] - predicted.start[t];
    const Instant late = t < lateness.size() ? lateness[t] : 0;
    const Instant seen = measured.end[t] - measured.start[t] - late;
    if (!device || expected < shortest || seen < shortest) continue;
    const auto weight = static_cast<double>(expected);
    Evidence& evidence = devices[*device];
    evidence.ratios.push_back({static_cast<double>(seen) / weight, weight});
    evidence.predicted.push_back({predicted.start[t], predicted.end[t]});
    evidence.measured.push_back({measured.start[t], measured.start[t] + seen});
  }
  std::vector<Suspect> suspects;
  for (auto& [device, evidence] : devices) {
    std::vector<Ratio>& list = evidence.ratios;
    std::ranges::sort(list, {}, &Ratio::value);
    const double ratio = quantile(list, 0.5);
    const double spread = (quantile(list, 0.75) - quantile(list, 0.25)) / ratio;
    if (!is_off(ratio, evidence.busy_ratio(), spread)) continue;
    suspects.push_back({text_of(demands, resources, device), list.size(), ratio, spread,
                        exposed(plan, demands, path, device) / iterations});
  }
  std::ranges::stable_sort(suspects, std::greater<>{}, &Suspect::exposed);
  return suspects;
}

}  // namespace tidegate
