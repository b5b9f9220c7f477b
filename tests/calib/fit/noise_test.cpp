#include "calib/fit/noise.hpp"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tests/calib/fit/noise.hpp"
#include "tests/catch.hpp"

using namespace tidegate::calib;

namespace {

double chi_squared(Noise& noise, int freedom) {
  double sum = 0;
  for (int i = 0; i < freedom; ++i) sum += std::pow(noise.normal(), 2);
  return sum;
}

}  // namespace

TEST_CASE("the derivatives of log gamma are those of the tables", "[noise]") {
  // Abramowitz and Stegun 6.3.2, 6.3.3, 6.4.2 and 6.4.4.
  CHECK(digamma(1) == Approx(-0.5772156649).epsilon(1e-9));
  CHECK(digamma(0.5) == Approx(-0.5772156649 - 2 * std::numbers::ln2).epsilon(1e-9));
  const double pi = std::numbers::pi;
  CHECK(trigamma(1) == Approx(pi * pi / 6).epsilon(1e-9));
  CHECK(trigamma(0.5) == Approx(pi * pi / 2).epsilon(1e-9));
}

TEST_CASE("the probability beyond t inverts Student's quantile", "[noise]") {
  CHECK(two_sided(12.706, 1) == Approx(0.05).epsilon(1e-3));
  CHECK(two_sided(-2.2622, 9) == Approx(0.05).epsilon(1e-3));
  CHECK(two_sided(1.95996, std::numeric_limits<double>::infinity()) == Approx(0.05).epsilon(1e-3));
  CHECK(two_sided(3, 0.4) == Approx(two_sided(3, 1)));
  CHECK(two_sided(3, 4) > two_sided(3, 4.5));
  CHECK(two_sided(3, 4.5) > two_sided(3, 5));
}

TEST_CASE("freedom of a sum is that of its parts together where they are alike", "[noise]") {
  // (1 + 1)² / (1/3 + 1/3) = 6; where one part is nothing, that of the other: 81 / (81/5) = 5.
  CHECK(freedom_of_sum({1, 3}, {1, 3}) == Approx(6));
  CHECK(freedom_of_sum({3, 5}, {1e-6, 1}) == Approx(5));
}

TEST_CASE("a deviation known from two blocks is drawn towards that of all rows", "[noise]") {
  // (3 · 0.04² + 1 · 0.1²) / 4 = 0.0037.
  const KnownSpread s = moderated({0.10, 1}, {0.04, 3});
  CHECK(s.spread == Approx(std::sqrt(0.0037)));
  CHECK(s.freedom == 4);
  // One block says nothing: the others say all. No others: nothing changes.
  CHECK(moderated({0, 0}, {0.04, 3}).spread == Approx(0.04));
  CHECK(moderated({0.10, 1}, {}).spread == 0.10);
}

TEST_CASE("the prior finds the deviation of rows and how much they differ", "[noise]") {
  // Variances s0² d0 / chi²(d0), each seen through `freedom` degrees of it (Smyth 2004, section 3).
  const double s0 = 0.05, d0 = 6;
  Noise noise(3);
  for (const int freedom : {1, 2}) {
    std::vector<KnownSpread> rows;
    for (int i = 0; i < 2000; ++i) {
      const double variance = s0 * s0 * d0 / chi_squared(noise, static_cast<int>(d0));
      rows.push_back(
          {std::sqrt(variance * chi_squared(noise, freedom) / freedom), double(freedom)});
    }
    const KnownSpread prior = prior_of(rows);
    INFO(prior.spread << " " << prior.freedom);
    // 2000 rows tell s0 to a few percent, d0 to a third.
    CHECK(prior.spread == Approx(s0).epsilon(0.08));
    CHECK(prior.freedom > 4);
    CHECK(prior.freedom < 9);
  }
}

TEST_CASE("rows that differ no more than chance share one deviation; a few rows say nothing",
          "[noise]") {
  Noise noise(5);
  std::vector<KnownSpread> rows;
  for (int i = 0; i < 500; ++i) rows.push_back({0.05 * std::sqrt(chi_squared(noise, 2) / 2), 2});
  const KnownSpread prior = prior_of(rows);
  CHECK(prior.spread == Approx(0.05).epsilon(0.1));
  CHECK(prior.freedom > 20);
  rows.resize(7);
  CHECK(prior_of(rows).freedom == 0);
}
