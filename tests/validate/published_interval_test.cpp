#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/run/interval.hpp"
#include "tests/catch.hpp"
#include "validate/discrepancy.hpp"
#include "validate/published.hpp"

using namespace tidegate;

TEST_CASE("without a deviation of the profile the models miss by the root mean square",
          "[interval]") {
  // The likelihood of N(0, m²) is highest at m² = mean of squares: (0.03² + 0.04²) / 2 = 0.00125.
  const Miss misses[] = {{.log_ratio = 0.03}, {.log_ratio = -0.04}};
  CHECK(model_deviation(misses) == Approx(std::sqrt(0.00125)).margin(1e-5));
}

TEST_CASE("misses within what the profile explains leave nothing to the models", "[interval]") {
  const Miss misses[] = {{.log_ratio = 0.03, .deviation = 0.04},
                         {.log_ratio = -0.04, .deviation = 0.04}};
  CHECK(model_deviation(misses) == 0);
  CHECK(model_deviation({}) == 0);
}

TEST_CASE("variances of profile and models add", "[interval]") {
  // All with deviation d: the most likely total variance is the mean square 0.0025, so that
  // m² = 0.0025 - 0.0009 = 0.0016.
  const Miss misses[] = {{.log_ratio = 0.05, .deviation = 0.03},
                         {.log_ratio = -0.05, .deviation = 0.03}};
  CHECK(model_deviation(misses) == Approx(0.04).margin(1e-5));
}

namespace {

// Predicted once.
const Published& with_intervals(const std::string& file) {
  static std::map<std::string, Published> known;
  const auto at = known.find(file);
  if (at != known.end()) return at->second;
  const std::string path = std::string(TIDEGATE_SOURCE_DIR) + "/validate/published/" + file;
  return known.emplace(file, run_published({.file = path, .draws = 6})).first->second;
}

}  // namespace

TEST_CASE("the models' share of every interval is what the published runs out of sample say",
          "[interval][published]") {
  std::vector<Miss> misses;
  for (const char* file : {"mlp_offload.yaml", "megatron_a100.yaml"}) {
    for (const PublishedRow& row : with_intervals(file).rows) {
      if (!row.profile_deviation || row.in_sample) continue;
      misses.push_back({std::log(row.measured / row.predicted), *row.profile_deviation});
    }
  }
  REQUIRE(misses.size() == 16);  // eight runs of each file
  // Deviations of 6 draws are known to 32 %, which moves the rest by less than this.
  CHECK(published_model_deviation == Approx(model_deviation(misses)).margin(0.005));
}

TEST_CASE("no interval knows what was measured of its own case", "[interval][published]") {
  const Published& all = with_intervals("megatron_a100.yaml");
  for (const PublishedRow& left_out : all.rows) {
    if (!left_out.profile_deviation) continue;
    std::vector<Miss> others;
    for (const PublishedRow& row : all.rows) {
      if (!row.profile_deviation || row.case_name == left_out.case_name) continue;
      others.push_back({std::log(row.measured / row.predicted), *row.profile_deviation});
    }
    CHECK(left_out.model_deviation == model_deviation(others));
  }
}
