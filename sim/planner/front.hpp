#pragma once

#include <optional>
#include <vector>

#include "sim/planner/money.hpp"

/// Which of several machines are worth a look: no other is both cheaper and faster.
namespace tidegate::planner {

/// A run on one machine.
struct Point {
  double days = 0;
  Money cost = 0;
};

/// Points that none equals in one and beats in the other, fastest first; of equal ones the first.
std::vector<std::size_t> front_of(const std::vector<Point>& points);

/// Days from which on a machine that costs at least `rate` a day is behind one of the points, in
/// both: the least over points of max(days, cost / rate). Infinite without points.
double behind_from(const std::vector<Point>& points, Money rate);

}  // namespace tidegate::planner
