#include "sim/planner/front.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace tidegate::planner {

std::vector<std::size_t> front_of(const std::vector<Point>& points) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) { return std::tuple(points[i].days, points[i].cost); });
  std::vector<std::size_t> front;
  Money least = std::numeric_limits<double>::infinity();
  for (const std::size_t i : order) {
    if (points[i].cost >= least) continue;
    least = points[i].cost;
    front.push_back(i);
  }
  return front;
}

double behind_from(const std::vector<Point>& points, Money rate) {
  double least = std::numeric_limits<double>::infinity();
  for (const Point& p : points) {
    // What costs nothing is never dearer than a point that costs something.
    const double as_dear = rate > 0     ? p.cost / rate
                           : p.cost > 0 ? std::numeric_limits<double>::infinity()
                                        : 0;
    least = std::min(least, std::max(p.days, as_dear));
  }
  return least;
}

}  // namespace tidegate::planner
