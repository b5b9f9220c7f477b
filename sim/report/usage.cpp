#include "sim/report/usage.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

struct Use {
  Instant begin = 0;
  std::uint32_t task = 0;
  auto operator<=>(const Use&) const = default;
};

// Tasks that use anything, in the order in which they begin to.
std::vector<Use> uses_of(const Plan& plan, const Timeline& timeline,
                         std::span<const Demand> demands) {
  std::vector<Use> uses;
  for (std::size_t t = 0; t < plan.size(); ++t) {
    const Demand& demand = demands[index(plan.tasks[t].work)];
    if (demand.share_count == 0 || is_skipped(plan, static_cast<TaskId>(t), timeline)) continue;
    const Instant begin = timeline.start[t] + to_ticks(demand.latency);
    uses.push_back({std::min(begin, timeline.end[t]), static_cast<std::uint32_t>(t)});
  }
  std::ranges::sort(uses);
  return uses;
}

std::string place_text(Place place) {
  switch (place.tier) {
    case Tier::gpu:
      return fmt::format("gpu{}", place.index);
    case Tier::host:
      return "host";
    case Tier::storage:
      return fmt::format("path{}", place.index);
  }
  return "";
}

// How often each work is done by the period's iterations; works are few, tasks many.
std::vector<double> counts_of(const Plan& plan, const Timeline& timeline, const Steady& steady) {
  std::vector<double> counts(plan.works.size(), 0);
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    const Task& task = plan.tasks[t];
    if (!steady.contains(task.iteration) || is_skipped(plan, TaskId{t}, timeline)) continue;
    counts[index(task.work)] += 1;
  }
  return counts;
}

}  // namespace

Bytes payload(const Work& work) {
  struct Payload {
    Bytes operator()(const Delay&) const { return Bytes(0); }
    Bytes operator()(const Compute&) const { return Bytes(0); }
    Bytes operator()(const Copy& w) const { return w.bytes; }
    Bytes operator()(const FileIo& w) const { return w.bytes; }
    Bytes operator()(const AdamStep&) const { return Bytes(0); }
    Bytes operator()(const Cast&) const { return Bytes(0); }
    Bytes operator()(const Collective& w) const { return w.bytes; }
  };
  return std::visit(Payload{}, work);
}

std::vector<ResourceUse> use_of(const Plan& plan, const Timeline& timeline,
                                std::span<const Demand> demands, std::size_t resources,
                                const Steady& steady) {
  std::vector<ResourceUse> use(resources);
  std::vector<Instant> busy_until(resources, steady.from);
  for (const auto& [began, t] : uses_of(plan, timeline, demands)) {
    const Demand& demand = demands[index(plan.tasks[t].work)];
    const Instant begin = std::max(began, steady.from);
    const Instant end = std::min(timeline.end[t], steady.to);
    if (end <= begin) continue;
    const double part = to_seconds(end - begin) / to_seconds(timeline.end[t] - began);
    for (const Share& share : demand.used()) {
      const std::size_t r = index(share.resource);
      ensure(r < resources, "a share names a resource of its machine");
      use[r].busy += std::max<Instant>(0, end - std::max(begin, busy_until[r]));
      busy_until[r] = std::max(busy_until[r], end);
      use[r].work_within += part * share.fraction * demand.alone;
    }
  }
  const std::vector<double> counts = counts_of(plan, timeline, steady);
  for (std::size_t w = 0; w < counts.size(); ++w) {
    const bool carries = payload(plan.works[w]) > Bytes(0);
    for (const Share& share : demands[w].used()) {
      ResourceUse& u = use.at(index(share.resource));
      u.only_carries &= carries;
      u.work += counts[w] * share.fraction * demands[w].alone;
      u.bytes += counts[w] * payload(plan.works[w]);
    }
  }
  return use;
}

Traffic traffic_of(const Plan& plan, const Timeline& timeline, const Steady& steady) {
  Traffic traffic;
  const std::vector<double> counts = counts_of(plan, timeline, steady);
  for (std::size_t w = 0; w < counts.size(); ++w) {
    const Work& work = plan.works[w];
    if (const auto* file = std::get_if<FileIo>(&work)) {
      if (traffic.paths.size() <= file->path) traffic.paths.resize(file->path + std::size_t{1});
      Traffic::File& path = traffic.paths[file->path];
      (file->direction == Direction::read ? path.read : path.written) += counts[w] * file->bytes;
    } else if (const auto* copy = std::get_if<Copy>(&work)) {
      traffic.links[place_text(copy->from) + " -> " + place_text(copy->to)] +=
          counts[w] * copy->bytes;
    }
  }
  return traffic;
}

}  // namespace tidegate
