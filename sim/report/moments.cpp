#include "sim/report/moments.hpp"

#include <algorithm>

namespace tidegate {

std::vector<Moment> moments(const Timeline& timeline, std::size_t tasks,
                            const std::function<bool(TaskId)>& keep) {
  std::vector<Moment> list;
  for (std::size_t t = 0; t < tasks; ++t) {
    if (!keep(static_cast<TaskId>(t))) continue;
    list.emplace_back(timeline, t, false);
    list.emplace_back(timeline, t, true);
  }
  std::ranges::sort(list);
  return list;
}

}  // namespace tidegate
