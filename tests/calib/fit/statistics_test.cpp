#include "calib/fit/statistics.hpp"

#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/calib/fit/noise.hpp"
#include "tests/catch.hpp"

using namespace tidegate::calib;
using Values = std::vector<double>;

TEST_CASE("median and quantiles interpolate between order statistics", "[statistics]") {
  CHECK(median(Values{3}) == 3);
  CHECK(median(Values{4, 1, 3, 2}) == 2.5);
  // Type 7: at (5 - 1) · 0.1 = 0.4 between 1 and 2.
  CHECK(quantile(Values{5, 4, 3, 2, 1}, 0.1) == Approx(1.4));
  CHECK(quantile(Values{5, 4, 3, 2, 1}, 0) == 1);
  CHECK(quantile(Values{5, 4, 3, 2, 1}, 1) == 5);
  CHECK_THROWS_AS(median(Values{}), std::logic_error);
}

TEST_CASE("the spread is a standard deviation that outliers do not move", "[statistics]") {
  // Distances from 3: 2 1 0 1 2, their median 1.
  CHECK(spread(Values{1, 2, 3, 4, 5}) == Approx(1.4826));
  CHECK(spread(Values{1, 2, 3, 4, 500}) == Approx(1.4826));
  CHECK(spread(Values{7, 7, 7}) == 0);
}

TEST_CASE("the interval of a median has binomial ranks", "[statistics]") {
  // Of 10 values: P(at most 1 below) = 11/1024 = 1.1 %, P(at most 2) = 56/1024 = 5.5 %, so the 2nd
  // and the 9th value.
  const Interval ten = median_interval(Values{10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(ten.low == 2);
  CHECK(ten.high == 9);
  const Interval five = median_interval(Values{1, 2, 3, 4, 5});
  CHECK(five.low == 1);
  CHECK(five.high == 5);
  CHECK(median_interval(Values{4}).low == 4);

  Noise noise(1);
  int covered = 0;
  for (int draw = 0; draw < 1000; ++draw) {
    Values x(25);
    for (double& v : x) v = noise.factor(0.5);
    covered += median_interval(x).contains(1) ? 1 : 0;
  }
  // Exact rate at n = 25: 1 - 2 · P(X <= 7) = 95.7 %, standard error 0.64 %; three of them.
  CHECK(covered > 937);
  CHECK(covered < 976);
}

TEST_CASE("the interval of a mean uses Student's quantiles", "[statistics]") {
  // Tables of Student's distribution, 95 % two-sided.
  CHECK(student_quantile(1) == Approx(12.706).epsilon(1e-4));
  CHECK(student_quantile(2) == Approx(4.3027).epsilon(1e-4));
  CHECK(student_quantile(9) == Approx(2.2622).epsilon(1e-4));
  CHECK(student_quantile(30) == Approx(2.0423).epsilon(1e-4));
  CHECK(student_quantile(1e6) == Approx(1.95996).epsilon(1e-4));
  CHECK(student_quantile(2.5) < student_quantile(2));
  CHECK(student_quantile(2.5) > student_quantile(3));
  // 1, 2, 3: mean 2, s = 1, half-width 4.3027 / sqrt(3) = 2.4842.
  const Interval three = mean_interval(Values{1, 2, 3});
  CHECK(three.low == Approx(2 - 2.4842).margin(1e-4));
  CHECK(three.high == Approx(2 + 2.4842).epsilon(1e-4));
  CHECK(std::isinf(mean_interval(Values{5}).high));
  CHECK(mean_interval(Values{5}).contains(-1e300));
}

TEST_CASE("autocorrelation is that of neighbours", "[statistics]") {
  // About the mean 0: products of neighbours -1, five of them, over six squares.
  CHECK(autocorrelation(Values{1, -1, 1, -1, 1, -1}) == Approx(-5.0 / 6));
  CHECK(autocorrelation(Values{3, 3, 3, 3}) == 0);
  CHECK(autocorrelation(Values{}) == 0);
}

TEST_CASE("a step is found where it is, and an outlier is none", "[statistics]") {
  const Values step{4.5, 4.4, 4.6, 4.5, 4.5, 2.0, 2.05, 1.95, 2.0, 2.0};
  const ChangePoint change = change_point(step);
  CHECK(change.at == 5);
  CHECK(change.ratio == Approx(2.0 / 4.5).epsilon(0.01));
  CHECK_FALSE(change_point(Values{5, 5, 5, 5, 5, 10, 5, 5, 5, 5}).found());
  CHECK_FALSE(change_point(Values(20, 3.0)).found());
  CHECK_FALSE(change_point(Values{1, 2}).found());
  CHECK(change_point(Values{1, 1, 1, 2, 2, 2}).at == 3);

  for (const std::size_t length : {10UL, 20UL, 60UL}) {
    Noise noise(length);
    int found = 0;
    for (int draw = 0; draw < 1000; ++draw) {
      Values x(length);
      for (double& v : x) v = noise.factor(0.05);
      found += change_point(x).found() ? 1 : 0;
    }
    INFO(length << " values: " << found << " of 1000 series of noise");
    CHECK(found < 20);  // at most 10 are expected; three standard errors of 3.1
  }
}

TEST_CASE("steady windows have no range, slope or step", "[statistics]") {
  CHECK(is_steady(Values{100, 104, 98, 101, 99, 103}));
  CHECK_FALSE(is_steady(Values{100, 104, 98, 101}));        // too few to tell
  CHECK_FALSE(is_steady(Values{100, 100, 125, 100, 100}));  // range 25 of 105
  CHECK_FALSE(is_steady(Values{94, 97, 100, 103, 106}));    // slope 3 over 4 steps: 12 %
  // Range 8 of 101; slope 180 / 484.5 over 17 steps: 6.3; but a step of 7.7 %.
  Values step(18, 100);
  step[0] = step[1] = step[2] = 108;
  CHECK_FALSE(is_steady(step));
  CHECK(is_steady(Values{100.2, 100.2, 100.2, 100.2, 100, 100, 100, 100}));  // a step of 0.2 %
}
