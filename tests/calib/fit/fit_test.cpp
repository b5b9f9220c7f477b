#include "calib/fit/fit.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "tests/calib/fit/truths.hpp"
#include "tests/catch.hpp"

using namespace tidegate::calib;
using truths::Blur;
using truths::Truth;

namespace {

Fit fitted(const Truth& truth, int passes, const Blur& blur, std::uint64_t seed = 1) {
  Noise noise(seed);
  return fit(truth.form, truths::measured(truth, passes, blur, noise), {.draws = 20});
}

bool is_number(const Fit& fit) {
  double sum = 0;
  for (const Parameter& p : fit.parameters) sum += p.value;
  bool ordered = true;
  for (const Parameter& p : fit.parameters) ordered &= p.interval.low <= p.interval.high;
  return ordered && std::isfinite(sum + fit.residual + fit.outlying) && fit.held_out_setting >= 0 &&
         fit.held_out_pass >= 0 && fit.measurement >= 0;
}

}  // namespace

TEST_CASE("a fit without noise finds the parameters of every form", "[fit]") {
  for (const Truth& truth : truths::all()) {
    const Fit found = fitted(truth, 2, {.block = 0});
    INFO(found.form);
    CHECK(found.residual < 1e-3);
    CHECK(found.outlying == 0);
    CHECK(found.is_usable);
    REQUIRE(found.parameters.size() == truth.parameters.size());
    for (std::size_t j = 0; j < truth.parameters.size(); ++j) {
      INFO(found.parameters[j].name);
      const bool is_credit = truth.form == Form::leaky_bucket && j == 2;
      // A credit is only known to lie between two settings, 10 GB apart.
      CHECK(found.parameters[j].value ==
            Approx(truth.parameters[j]).epsilon(is_credit ? 10e9 / 117e9 : 0.01));
    }
  }
}

TEST_CASE("a fit to 5 % of noise predicts every form within it", "[fit]") {
  for (const Truth& truth : truths::all()) {
    const Fit found = fitted(truth, 3, {.block = 0.05});
    INFO(found.form);
    CHECK(found.residual > 0.03);
    CHECK(found.residual < 0.08);
    CHECK(found.is_usable);
    std::vector<double> errors;
    for (const auto& x : truth.settings) {
      const double y = truth.y(truth.parameters, x);
      if (y > 0) errors.push_back(std::abs(std::log(found.at(x) / y)));
    }
    CHECK(median(errors) < 0.05);
  }
}

TEST_CASE("one block of eight at twice the rate is put aside and counted", "[fit]") {
  const Fit found = fitted(truths::queue_saturating(), 5, {.block = 0.03, .outliers = 0.12});
  // 120 blocks: 14 expected, standard deviation 3.6.
  CHECK(found.outlying > 0.03);
  CHECK(found.outlying < 0.21);
  CHECK(found.residual > 0.15);  // sqrt(0.12) · log 2 = 0.24: the report still shows them
  CHECK(found.parameter("B_max") == Approx(7e9).epsilon(0.05));
  CHECK_THROWS_AS(found.parameter("Bmax"), std::logic_error);
}

TEST_CASE("a form that cannot follow the points is not usable", "[fit]") {
  // A rate that falls with the number of threads, measured well: no saturation does that.
  std::vector<Point> points;
  Noise noise(3);
  for (int pass = 0; pass < 3; ++pass) {
    for (const double threads : {1., 2., 4., 8., 16.}) {
      points.push_back({{threads}, 10e9 / threads * noise.factor(0.01), pass});
    }
  }
  const Fit found = fit(Form::thread_saturating, points, {.draws = 20});
  CHECK_FALSE(found.is_usable);
  CHECK(found.held_out_setting > 0.1);
  CHECK(found.outlying == 0);  // the passes agree: a misfit is no outlier
}

TEST_CASE("what the points do not tell has no bounds", "[fit]") {
  // Reads alone say nothing about writes, nor about mixing.
  std::vector<Point> points;
  for (int i = 0; i < 6; ++i) points.push_back({{0}, 5e9 * (1 + 0.01 * i), i, 0});
  const Fit found = fit(Form::capacity_region, points, {.draws = 20});
  CHECK(is_number(found));
  CHECK_FALSE(found.is_usable);
  CHECK(std::isfinite(found.parameters[0].interval.high));
  CHECK(std::isinf(found.parameters[1].interval.high));
  CHECK(std::isinf(found.parameters[2].interval.high));
}

TEST_CASE("a serial server shows its one rate and no other", "[fit]") {
  // 0.55 GB/s whatever block and depth are.
  std::vector<Point> points;
  Noise noise(5);
  for (int pass = 0; pass < 3; ++pass) {
    for (const double block : {131072., 1048576., 4194304., 16777216.}) {
      for (const double depth : {1., 4., 16., 32.}) {
        points.push_back({{block, depth}, 0.55e9 * noise.factor(0.06), pass});
      }
    }
  }
  const Fit found = fit(Form::queue_saturating, points);
  CHECK(is_number(found));
  CHECK(found.is_usable);
  CHECK(found.parameter("B_max") == Approx(0.55e9).epsilon(0.06));
  CHECK(found.at(std::vector<double>{1048576, 16}) == Approx(0.55e9).epsilon(0.06));
  CHECK(found.domain[1].high == 32);
}

TEST_CASE("a cliff of a cache lies between two measured sizes", "[fit]") {
  std::vector<Point> points;
  Noise noise(6);
  for (int pass = 0; pass < 3; ++pass) {
    for (const double size : {1e9, 2e9, 4e9, 8e9, 16e9}) {
      points.push_back({{size}, (size < 5e9 ? 5 : 1) * noise.factor(0.03), pass});
    }
  }
  const Fit found = fit(Form::cache_knee, points, {.draws = 40});
  CHECK(found.parameter("ratio") == Approx(5).epsilon(0.05));
  CHECK(found.parameters[1].interval.low <= 4e9);
  CHECK(found.parameters[1].interval.high == 8e9);
}

TEST_CASE("odd inputs give numbers, and are not usable", "[fit]") {
  for (const Truth& truth : truths::all()) {
    INFO(name_of(truth.form));
    SECTION(std::string("one pass, ") + name_of(truth.form)) {
      const Fit found = fitted(truth, 1, {.block = 0.05});
      CHECK(is_number(found));
      CHECK(std::isinf(found.held_out_pass));
      CHECK_FALSE(found.is_usable);
    }
    SECTION(std::string("one setting, ") + name_of(truth.form)) {
      Truth one = truth;
      one.settings = {truth.settings[1]};
      const Fit found = fitted(one, 6, {.block = 0.05});
      CHECK(is_number(found));
      CHECK(found.is_usable == (truth.form == Form::constant));
    }
    SECTION(std::string("constant data, ") + name_of(truth.form)) {
      Truth flat = truth;
      flat.y = [](const truths::Numbers&, const truths::Numbers&) { return 1e9; };
      CHECK(is_number(fitted(flat, 3, {.block = 0})));
    }
    SECTION(std::string("as many points as parameters, ") + name_of(truth.form)) {
      Noise noise(7);
      auto points = truths::measured(truth, 3, {.block = 0.05}, noise);
      points.resize(truth.parameters.size());
      const Fit found = fit(truth.form, points, {.draws = 20});
      CHECK(is_number(found));
      CHECK(std::isinf(found.parameters[0].interval.high));
      points.pop_back();
      CHECK_THROWS_AS(fit(truth.form, points), std::logic_error);
    }
  }
}

TEST_CASE("the same points and seed give the same fit", "[fit]") {
  const Fit a = fitted(truths::adam(), 3, {});
  const Fit b = fitted(truths::adam(), 3, {});
  CHECK(a.parameters[2].interval.high == b.parameters[2].interval.high);
}

TEST_CASE("points that are not of the form are our mistake", "[fit]") {
  CHECK_THROWS_AS(fit(Form::constant, std::vector<Point>{{{1}, 0, 0}}), std::logic_error);
  CHECK_THROWS_AS(fit(Form::constant, std::vector<Point>{{{1, 2}, 3, 0}}), std::logic_error);
  CHECK_THROWS_AS(fit(Form::constant, std::vector<Point>{{{1}, NAN, 0}}), std::logic_error);
}

TEST_CASE("the spread between passes is that of pairs", "[fit]") {
  // log 2 between the two blocks of each setting: 1.4826 · 0.6931 / 1.4142 = 0.7267.
  const std::vector<Point> points{{{1}, 1, 0}, {{1}, 2, 1}, {{2}, 30, 0}, {{2}, 15, 1}};
  CHECK(between_pass_spread(points) == Approx(0.7267).epsilon(1e-3));
  CHECK(between_pass_spread(std::vector<Point>{{{1}, 1, 0}, {{2}, 2, 0}}) == 0);
}
