#include <algorithm>
#include <map>

#include "sim/page/report_page.hpp"
#include "sim/report/period.hpp"

namespace tidegate::page {
namespace {

// Neighbours become one box where the gap between them is the smallest, until few are left.
void thin(std::vector<Lanes::Box>& boxes, std::size_t most) {
  while (boxes.size() > most) {
    std::vector<double> gaps;
    for (std::size_t i = 1; i < boxes.size(); ++i) gaps.push_back(boxes[i].from - boxes[i - 1].to);
    const std::size_t surplus = boxes.size() - most;
    std::ranges::nth_element(gaps, gaps.begin() + static_cast<std::ptrdiff_t>(surplus - 1));
    const double bound = gaps[surplus - 1];
    std::vector<Lanes::Box> fewer{boxes.front()};
    std::size_t merged = 0;
    for (std::size_t i = 1; i < boxes.size(); ++i) {
      const bool joins = merged < surplus && boxes[i].from - fewer.back().to <= bound;
      if (joins) {
        fewer.back().to = std::max(fewer.back().to, boxes[i].to);
        ++merged;
      } else {
        fewer.push_back(boxes[i]);
      }
    }
    boxes = std::move(fewer);
  }
}

}  // namespace

Lanes lanes_of(const Plan& plan, const Timeline& timeline, std::size_t most_boxes) {
  const Steady steady = steady_period(iterations_of(plan, timeline));
  Lanes all{
      .title = "Timeline of rank 0 and of what ranks share",
      .description = "Each row is a lane: a stream, a copy engine, an I/O worker or a thread.",
      .names = plan.names,
      .lanes = {},
      .from = to_seconds(steady.from).value(),
      .to = to_seconds(steady.to).value()};
  std::map<std::size_t, Lanes::Lane> by_lane;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    const Task& task = plan.tasks[t];
    if (task.rank != 0 || timeline.end[t] <= timeline.start[t]) continue;
    if (timeline.end[t] <= steady.from || timeline.start[t] >= steady.to) continue;
    const auto name = static_cast<std::uint32_t>(index(task.name));
    by_lane[index(task.lane)].boxes.push_back(
        {std::max(all.from, to_seconds(timeline.start[t]).value()),
         std::min(all.to, to_seconds(timeline.end[t]).value()), name, name});
  }
  for (auto& [lane, boxes] : by_lane) {
    boxes.name = plan.lanes[lane].name;
    std::ranges::stable_sort(boxes.boxes, {}, &Lanes::Box::from);
    thin(boxes.boxes, most_boxes);
    all.lanes.push_back(std::move(boxes));
  }
  return all;
}

}  // namespace tidegate::page
