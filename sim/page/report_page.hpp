#pragma once

#include <string>

#include "sim/page/page.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/report.hpp"
#include "sim/timeline/timeline.hpp"

namespace tidegate::page {

/// The steady period of a timeline as lanes: of rank 0 and of what all ranks share. Where a lane
/// has more tasks than `most_boxes`, neighbours of one name become one box, then those of any name
/// that are nearest.
Lanes lanes_of(const Plan& plan, const Timeline& timeline, std::size_t most_boxes = 3000);

/// A prediction: summary, phases, memory over time by owner, resources, what would be gained,
/// timeline, critical path, storage, assumptions.
Page report_page(const Report& report, const Plan& plan, const Timeline& timeline);

}  // namespace tidegate::page
