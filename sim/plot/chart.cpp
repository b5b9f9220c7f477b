#include "sim/plot/chart.hpp"

#include <algorithm>
#include <cmath>

#include "models/base/error.hpp"

namespace tidegate {

std::vector<double> ticks(double from, double to, std::size_t most) {
  ensure(from < to && most > 1, "an axis has a length and more than one interval");
  // A multiple within rounding of a limit counts as the limit.
  constexpr double slack = 1e-9;
  const double power =
      std::pow(10, std::floor(std::log10((to - from) / static_cast<double>(most))));
  for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0}) {
    const double step = factor * power;
    const double first = std::floor(from / step + slack), last = std::ceil(to / step - slack);
    if (last - first > static_cast<double>(most)) continue;
    std::vector<double> values;
    for (double n = first; n <= last; ++n) values.push_back(n * step);
    return values;
  }
  return {from, to};
}

std::vector<double> axis_ticks(double least, double largest, std::size_t most) {
  if (largest <= 0) return {0, 1};
  return ticks(least > largest / 2 && least < largest ? least : 0, largest, most);
}

}  // namespace tidegate
