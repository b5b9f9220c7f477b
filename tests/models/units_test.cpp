#include "models/base/units.hpp"

#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::literals;

TEST_CASE("products and quotients of quantities have the right unit", "[units]") {
  const Seconds time = 24_GB / 12_GBps;
  CHECK(time.value() == 2);
  const Bytes moved = 3_GBps * 2_s;
  CHECK(moved.value() == 6e9);
  const double ratio = 6_GB / 3_GB;
  CHECK(ratio == 2);
}

TEST_CASE("text with a unit is read into base units", "[units]") {
  const auto read = [](const std::string& text, Dimension d) {
    double base = -1;
    std::string problem;
    CHECK(parse_quantity(text, d, base, problem));
    return base;
  };
  CHECK(read("80 GiB", Dimension::bytes) == 80. * 1024 * 1024 * 1024);
  CHECK(read("80GB", Dimension::bytes) == 80e9);
  CHECK(read("24.6 GB/s", Dimension::bytes_per_second) == 24.6e9);
  CHECK(read("1.5 GiB/s", Dimension::bytes_per_second) == 1.5 * 1073741824);
  CHECK(read("989 TFLOP/s", Dimension::flops_per_second) == 989e12);
  CHECK(read("12 us", Dimension::seconds) == Approx(12e-6));
  CHECK(read("2 h", Dimension::seconds) == 7200);
}

TEST_CASE("a missing or foreign unit is refused with the accepted units", "[units]") {
  const auto [text, dimension, part] = GENERATE(table<std::string, Dimension, std::string>(
      {{"24.6", Dimension::bytes_per_second, "has no unit"},
       {"24.6 Gb/s", Dimension::bytes_per_second, "Gb/s"},
       {"24.6 GB", Dimension::bytes_per_second, "GB"},
       {"5 s", Dimension::bytes, "'s'"},
       {"fast", Dimension::seconds, "is not a time"},
       {"nan s", Dimension::seconds, "is not a time"},
       {"inf s", Dimension::seconds, "is not a time"},
       {"1e999 B", Dimension::bytes, "is not a size"},
       {"", Dimension::bytes, "is not a size"}}));
  double base = 0;
  std::string problem;
  CHECK_FALSE(parse_quantity(text, dimension, base, problem));
  CHECK_THAT(problem, Containing(part));
  CHECK_THAT(problem, Containing(describe(dimension).units));
}

TEST_CASE("quantities print with four digits and the customary prefix", "[units]") {
  CHECK(to_text(80_GiB) == "80 GiB");
  CHECK(to_text(Bytes(1536)) == "1.5 KiB");
  CHECK(to_text(24.6_GBps) == "24.6 GB/s");
  CHECK(to_text(989_TFLOPs) == "989 TFLOP/s");
  CHECK(to_text(Seconds(0.00123)) == "1.23 ms");
  CHECK(to_text(Seconds(336.42677)) == "336.4 s");
  CHECK(to_text(Bytes(999.99)) == "1000 B");
  CHECK(to_text(BytesPerSecond(999.96e6)) == "1 GB/s");
}

TEST_CASE("a duration becomes the first whole picosecond at or after it", "[units]") {
  CHECK(to_ticks(1_s) == 1'000'000'000'000);
  CHECK(to_ticks(Seconds(1.5e-12)) == 2);
  CHECK(to_ticks(Seconds(0)) == 0);
}
