#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/demand.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/period.hpp"
#include "sim/timeline/timeline.hpp"

/// How much a steady period uses each resource, and which bytes go where. Skipped tasks use
/// nothing.
namespace tidegate {

/// Bytes that the work carries from one place to another: of a copy, a file access or a collective.
/// Zero for arithmetic, whose memory traffic is a matter of the machine.
Bytes payload(const Work& work);

/// Of one resource. A task uses its resources from start + latency to end, and needs
///
///   work = fraction · alone      seconds of the resource at full speed, pure traffic
///
/// of each, spread evenly over that time.
struct ResourceUse {
  Instant busy = 0;          ///< length of the union of its tasks' uses within the period
  Seconds work_within;       ///< part of the work that falls within the period
  Seconds work;              ///< of all tasks of the period's iterations, whenever they ran
  Bytes bytes;               ///< payload of the tasks of the period's iterations
  bool only_carries = true;  ///< every task of the plan that uses it has a payload
};

std::vector<ResourceUse> use_of(const Plan& plan, const Timeline& timeline,
                                std::span<const Demand> demands, std::size_t resources,
                                const Steady& steady);

/// Payload of the tasks of the period's iterations.
struct Traffic {
  struct File {
    Bytes read, written;
  };
  std::vector<File> paths;             ///< by FileIo::path, as far as the plan's works name them
  std::map<std::string, Bytes> links;  ///< by "host -> gpu0"
};

Traffic traffic_of(const Plan& plan, const Timeline& timeline, const Steady& steady);

}  // namespace tidegate
