#include <cmath>
#include <random>
#include <string>

#include "models/base/yaml.hpp"
#include "models/profile.hpp"
#include "models/uncertainty.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

yaml::Value values() {
  return yaml::load_text(
      "paths:\n"
      "  nvme:\n"
      "    read: {value: 8 GB/s, source: here, uncertainty: 20 %}\n"
      "    write: {value: 4 GB/s, source: here}\n"
      "gpus:\n"
      "  count: 2\n"
      "  gemm_efficiency: {points: [[1 GFLOP, 0.2], [10 GFLOP, 0.9]], source: here, uncertainty: "
      "50 %}\n"
      "host:\n"
      "  cores: {value: 64, source: here, uncertainty: 10 %}\n",
      "profile.yaml");
}

const yaml::Value& at(const yaml::Value& root, const char* section, const char* key) {
  return *root.find(section)->find(key);
}
double number(const std::string& text) { return std::stod(text); }

}  // namespace

TEST_CASE("a value varies by its uncertainty about its median, in its own unit", "[uncertainty]") {
  std::mt19937_64 random(3);
  constexpr int draws = 4000;
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const yaml::Value drawn_values = drawn(values(), random);
    const std::string text = at(*drawn_values.find("paths"), "nvme", "read").find("value")->text;
    CHECK(text.ends_with(" GB/s"));
    const double z = std::log(number(text) / 8);
    sum += z / draws;
    squares += z * z / draws;
  }
  // sqrt(ln(1 + 0.2²)) = 0.19804. Sampling errors: 0.198/sqrt(4000) = 0.0031 of the mean and
  // 0.198/sqrt(8000) = 0.0022 of the deviation; four of each.
  CHECK(std::abs(sum) < 0.0126);
  CHECK(std::abs(std::sqrt(squares - sum * sum) - 0.19804) < 0.0089);
}

TEST_CASE("what states no uncertainty and what is counted stays", "[uncertainty]") {
  std::mt19937_64 random(1);
  const yaml::Value drawn_values = drawn(values(), random);
  CHECK(at(*drawn_values.find("paths"), "nvme", "write").find("value")->text == "4 GB/s");
  CHECK(at(drawn_values, "gpus", "count").text == "2");
  CHECK(at(drawn_values, "host", "cores").find("value")->text == "64");
}

TEST_CASE("the points of a curve move together and stay fractions", "[uncertainty]") {
  std::mt19937_64 random(1);
  bool was_capped = false;
  for (int i = 0; i < 50; ++i) {
    const yaml::Value drawn_values = drawn(values(), random);
    const auto& points = at(drawn_values, "gpus", "gemm_efficiency").find("points")->items;
    const double low = number(points[0].items[1].text), high = number(points[1].items[1].text);
    CHECK(points[0].items[0].text == "1 GFLOP");
    CHECK(high == Approx(std::min(1.0, low * 4.5)));  // 0.9/0.2
    was_capped = was_capped || high == 1;
  }
  CHECK(was_capped);
}

TEST_CASE("one seed gives one machine", "[uncertainty]") {
  std::mt19937_64 a(5), b(5), c(6);
  const auto read = [](const yaml::Value& v) {
    return at(*v.find("paths"), "nvme", "read").find("value")->text;
  };
  CHECK(read(drawn(values(), a)) == read(drawn(values(), b)));
  CHECK(read(drawn(values(), a)) != read(drawn(values(), c)));
}

TEST_CASE("values with an uncertainty and rates without are counted apart", "[uncertainty]") {
  const Known count = known(values());
  CHECK(count.uncertain == 2);  // read, gemm_efficiency
  CHECK(count.silent == 1);     // write
}
