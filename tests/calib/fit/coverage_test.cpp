#include <cstdio>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "calib/fit/fit.hpp"
#include "tests/calib/fit/truths.hpp"
#include "tests/catch.hpp"

using namespace tidegate::calib;

namespace {

constexpr int fits = 100;

// How often the interval of each parameter holds the truth.
std::vector<int> covered(const truths::Truth& truth, const truths::Blur& blur) {
  std::vector<int> covered(truth.parameters.size());
  for (int i = 0; i < fits; ++i) {
    Noise noise(1000 + static_cast<std::uint64_t>(i));
    const Fit found = fit(truth.form, truths::measured(truth, 3, blur, noise), {.draws = 24});
    for (std::size_t j = 0; j < covered.size(); ++j) {
      if (found.parameters[j].interval.contains(truth.parameters[j])) ++covered[j];
    }
  }
  return covered;
}

// Printed for docs/calibration.md.
void check(const char* noise, const truths::Truth& truth, const truths::Blur& blur, int least) {
  const std::vector<int> counts = covered(truth, blur);
  std::string text = fmt::format("{:<9} {:<18}", noise, name_of(truth.form));
  for (const int count : counts) text += fmt::format(" {:3}", count);
  fmt::print("{}\n", text);
  std::fflush(stdout);
  INFO(text);
  for (std::size_t j = 0; j < counts.size(); ++j) {
    // Which of seven tiles it is, noise of 5 % hides more often than the draws around one show.
    const bool is_tile = truth.form == Form::gemm && j == 4;
    CHECK(counts[j] >= (is_tile ? 70 : least));
  }
}

}  // namespace

// Of 100 intervals of 95 %, fewer than 87 hold the truth with a probability of 0.06 %.
TEST_CASE("intervals hold the truth as often as they say, under noise of blocks", "[fit]") {
  for (const truths::Truth& truth : truths::all()) check("blocks", truth, {.block = 0.05}, 87);
}

TEST_CASE("intervals hold the truth as often as they say, when passes drift", "[fit]") {
  for (const truths::Truth& truth : truths::all()) {
    check("passes", truth, {.block = 0.03, .pass = 0.06}, 87);
  }
}

// Where two of the three blocks of a setting are wrong, it looks as if the third were: intervals
// are then too short for forms with few settings. 75 of 100 is what is asked.
TEST_CASE("intervals mostly hold the truth when one block of eight is twice as fast", "[fit]") {
  for (const truths::Truth& truth : truths::all()) {
    check("outliers", truth, {.block = 0.05, .outliers = 0.12}, 75);
  }
}
