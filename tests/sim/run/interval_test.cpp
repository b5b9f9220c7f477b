#include <algorithm>
#include <cmath>

#include "sim/run/elasticity.hpp"
#include "sim/run/interval.hpp"
#include "sim/run/predict.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

// Of all uncertainties only that of one path's value is left.
void silence_but(yaml::Value& map, const std::string& path, const std::string& key,
                 const std::string& uncertainty, const std::string& here = "") {
  for (yaml::Entry& entry : map.entries) {
    const std::string name = here.empty() ? entry.key : here + "." + entry.key;
    if (entry.value.find("value") == nullptr && entry.value.find("points") == nullptr) {
      silence_but(entry.value, path, key, uncertainty, name);
      continue;
    }
    std::erase_if(entry.value.entries, [](const yaml::Entry& e) { return e.key == "uncertainty"; });
    if (here != path || entry.key != key) continue;
    yaml::Value text;
    text.kind = yaml::Value::Kind::scalar;
    text.text = uncertainty;
    entry.value.entries.push_back({.key = "uncertainty", .where = {}, .value = text});
  }
}

Scenario scenario() {
  return load_scenario(std::string(TIDEGATE_SOURCE_DIR) +
                       "/scenarios/llama2_7b_zero_offload_4090.yaml");
}

}  // namespace

TEST_CASE("drawn times do not depend on the number of threads", "[interval]") {
  Scenario s = scenario();
  const Prediction p = predict(s);
  CHECK(drawn_times(s, p, {.draws = 6, .seed = 2, .threads = 1}) ==
        drawn_times(s, p, {.draws = 6, .seed = 2, .threads = 3}));
}

TEST_CASE("one uncertain value widens the interval by its elasticity", "[interval]") {
  Scenario s = scenario();
  silence_but(s.hardware, "gpus", "memory_bandwidth", "0 %");
  Prediction p = predict(s);
  add_interval(s, p, {.model_deviation = 0});
  REQUIRE(p.report.range);
  CHECK(p.report.range->uncertain == 0);
  CHECK(p.report.range->low == p.report.iteration_time);

  // log-time moves by elasticity · s for the Adam rate, which nothing else shares.
  silence_but(s.hardware, "host", "adam_rate", "0.5 %");
  constexpr double moved = 1.005;
  Scenario faster = load_scenario(
      std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/llama2_7b_zero_offload_4090.yaml",
      {{"machine.host.adam_rate", std::to_string(2.1e9 * moved)}});
  const double elasticity =
      std::log(p.report.iteration_time / predict(faster).report.iteration_time) / std::log(moved);
  REQUIRE(elasticity > 0.02);
  add_interval(s, p, {.draws = 400, .seed = 3, .threads = 2, .model_deviation = 0});
  const double reach = std::log(p.report.range->high / p.report.iteration_time);
  // s = 0.005: from 2 % on, host memory is the limit of Adam instead. A deviation of 400 draws is
  // known to 1/sqrt(800) = 3.5 %; three of it and a little for the curve.
  CHECK(reach == Approx(1.645 * 0.005 * elasticity).epsilon(0.15));
  CHECK(p.report.range->low.value() * p.report.range->high.value() ==
        Approx(std::pow(p.report.iteration_time.value(), 2)));
}

TEST_CASE("what the models miss adds to the profile's share in squares", "[interval]") {
  Scenario s = scenario();
  silence_but(s.hardware, "gpus", "memory_bandwidth", "0 %");  // nothing uncertain is left
  Prediction p = predict(s);
  add_interval(s, p, {.model_deviation = 0.1});
  // exp(1.645 · 0.1) = 1.1788
  CHECK(p.report.range->high / p.report.iteration_time == Approx(1.1788).epsilon(1e-4));

  silence_but(s.hardware, "host", "adam_rate", "0.5 %");
  add_interval(s, p, {.draws = 8, .model_deviation = 0});
  const double alone = std::log(p.report.range->high / p.report.iteration_time);
  add_interval(s, p, {.draws = 8, .model_deviation = 0.02});
  CHECK(std::log(p.report.range->high / p.report.iteration_time) ==
        Approx(std::hypot(alone, 1.645 * 0.02)));
}
