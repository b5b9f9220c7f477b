#include "sim/planner/front.hpp"

#include <cmath>

#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::planner;

TEST_CASE("the front has what nothing beats in time and in cost", "[front]") {
  // 8 days for 160 is behind 7 for 150; 5 for 250 behind 5 for 200; the second 10 for 100 is equal.
  const std::vector<Point> points = {{10, 100}, {5, 200}, {7, 150}, {8, 160}, {5, 250}, {10, 100}};
  CHECK(front_of(points) == std::vector<std::size_t>{1, 2, 0});
  CHECK(front_of({}).empty());
}

TEST_CASE("a machine is behind from when it is both slower and dearer than a point", "[front]") {
  const std::vector<Point> points = {{5, 200}, {10, 100}};
  // At 20 a day: 200 is reached after 10 days and 100 after 5, but the latter point takes 10 days.
  CHECK(behind_from(points, 20) == 10);
  // At 50 a day: 200 after 4 days, so behind the first point from its 5 days on.
  CHECK(behind_from(points, 50) == 5);
  // At 1 a day nothing is dearer before 100 days, when it is as dear as the second point.
  CHECK(behind_from(points, 1) == 100);
  CHECK(std::isinf(behind_from({}, 1)));
  CHECK(std::isinf(behind_from(points, 0)));
}

TEST_CASE("whatever is behind is not on the front", "[front]") {
  const std::vector<Point> points = {{5, 200}, {10, 100}};
  for (const double rate : {1.0, 7.0, 20.0, 50.0}) {
    const double days = behind_from(points, rate) * 1.001;
    std::vector<Point> with(points);
    with.push_back({days, rate * days});
    CHECK(front_of(with) == front_of(points));
  }
}
