// Measured rows as the rates of a machine: what lies between passes, and what a profile says.
#include <cmath>
#include <string>
#include <vector>

#include "calib/node/estimate.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"
#include "tests/validate/native/measured_rows.hpp"
#include "tests/validate/native/native_profile.hpp"
#include "validate/native/passes.hpp"
#include "validate/native/rates.hpp"

using namespace tidegate;
using tidegate::test::all_rows;
using tidegate::test::measured;
using tidegate::test::native_profile;
using tidegate::test::TemporaryFolder;

namespace {

std::string value_of(const std::vector<Override>& overrides, const std::string& key) {
  for (const auto& [name, text] : overrides) {
    if (name == key) return text;
  }
  return "none";
}

}  // namespace

TEST_CASE("deviation over all passes holds the drift, that of neighbours does not",
          "[native][passes]") {
  // 1, 2, 3: deviation 1 over a mean of 2. Neighbours differ by 1: sqrt(2 · 1 / (2 · 2)) = 0.707.
  const std::vector<double> drifting = {1, 2, 3};
  CHECK(deviation(drifting, Spread::over_all) == Approx(0.5));
  CHECK(deviation(drifting, Spread::of_neighbours) == Approx(std::sqrt(0.5) / 2));
  // Noise without drift, 1, 3, 1, 3: over all sqrt(4 / 3), neighbours sqrt(12 / 6), mean 2.
  const std::vector<double> noisy = {1, 3, 1, 3};
  CHECK(deviation(noisy, Spread::over_all) == Approx(std::sqrt(4. / 3) / 2));
  CHECK(deviation(noisy, Spread::of_neighbours) == Approx(std::sqrt(2.) / 2));
  CHECK(deviation(std::vector<double>{7}, Spread::over_all) == 0);
}

TEST_CASE("a moment lies between the nearest passes that know a row", "[native][passes]") {
  // Passes with 1, none, 3 and 4 of a row. Between the second and the third: the first's and the
  // third's, mean 2; after the last: the last.
  const auto pass = [](double value, const char* spoiled) {
    calib::Measurements m{.rows = {measured("rig.copy", {}, value)}, .canaries = {}};
    m.passes = 1;
    m.rows[0].blocks.resize(1);
    m.rows[0].blocks[0].samples[0].spoiled = spoiled;
    return m;
  };
  const std::vector<calib::Measurements> passes = {pass(1, ""), pass(9, "busy"), pass(3, ""),
                                                   pass(4, "")};
  const auto value = [&](std::size_t before) {
    return calib::estimate(around(passes, before).rows[0]).value;
  };
  CHECK(value(0) == Approx(2));
  CHECK(value(1) == Approx(2));
  CHECK(value(2) == Approx(3.5));
  CHECK(value(3) == Approx(4));
  CHECK(calib::block_values(joined(passes).rows[0]) == std::vector<double>{1, 3, 4});
}

TEST_CASE("measured rows become the values of the machine", "[native][rates]") {
  const TemporaryFolder folder;
  const std::vector<NativePath> paths = {{"drive", folder.path()}, {"second", folder.path()}};
  const Rates rates = rates_of(all_rows(), paths);
  const std::vector<Override> set = overrides_of(rates);
  // Two products of 4.29 GFLOP: their median (90 + 110) / 2 is the peak; the small one has half.
  CHECK_THAT(value_of(set, "machine.gpus.peak_16"),
             Catch::Matchers::StartsWith("{value: 100 GFLOP/s, source: "));
  CHECK_THAT(value_of(set, "machine.gpus.gemm_efficiency"),
             Containing("[33.5544 MFLOP, 0.500], [4294.97 MFLOP, 1.000]"));
  CHECK_THAT(value_of(set, "machine.gpus.attention_efficiency"),
             Catch::Matchers::StartsWith("{value: 0.4,"));
  // One thread streams 10 of the 30 GB/s of all.
  CHECK_THAT(value_of(set, "machine.gpus.memory_efficiency"),
             Catch::Matchers::StartsWith("{value: 0.3333,"));
  CHECK_THAT(value_of(set, "machine.host.memory_bandwidth"),
             Catch::Matchers::StartsWith("{value: 30 GB/s,"));
  // Adam's blocks are 0.9, 1 and 1.1: relative deviation 10 %. The others have none of their own
  // and take the pooled one: sqrt(2 · 0.1² / (9 rows · 2)) = 3.33 %.
  CHECK_THAT(value_of(set, "machine.host.adam_rate"), Containing("uncertainty: 10 %"));
  CHECK_THAT(value_of(set, "machine.host.cast_rate"), Containing("uncertainty: 3.3 %"));
  // At once 1 of 2 and 0.3 of 1 GB/s: 0.5 + 0.3 of what one after the other takes, 1.25 times as
  // long. 2 / 1.25 and 1 / 1.25.
  CHECK_THAT(value_of(set, "machine.paths.drive.read_mixed"),
             Catch::Matchers::StartsWith("{value: 1.6 GB/s,"));
  CHECK_THAT(value_of(set, "machine.paths.drive.write_mixed"),
             Catch::Matchers::StartsWith("{value: 0.8 GB/s,"));
  // Paths of one device are measured once, and so are their values.
  CHECK_THAT(value_of(set, "machine.paths.second.read"),
             Catch::Matchers::StartsWith("{value: 2 GB/s,"));
}

TEST_CASE("what could not be measured is said with the reason", "[native][rates]") {
  const TemporaryFolder folder;
  calib::Measurements m = all_rows();
  for (calib::RowResult& r : m.rows) {
    if (r.row.quantity != "rig.copy") continue;
    for (calib::Block& block : r.blocks)
      block.samples[0].spoiled = "0.9 cores busy with other work";
  }
  CHECK_THROWS_WITH(rates_of(m, {{"drive", folder.path()}}),
                    Containing("rig.copy") && Containing("0.9 cores busy with other work"));
}

TEST_CASE("a profile gives the same values, of this host only", "[native][rates]") {
  const TemporaryFolder folder;
  const std::vector<NativePath> paths = {{"drive", folder.path()}, {"second", folder.path()}};
  const std::string file = folder.write("this.yaml", native_profile());
  const std::vector<Override> set = overrides_of(rates_of_profile(file, paths));
  CHECK_THAT(value_of(set, "machine.gpus.peak_16"),
             Catch::Matchers::StartsWith("{value: 50 GFLOP/s, source: ") &&
                 Containing("uncertainty: 10 %"));
  CHECK_THAT(value_of(set, "machine.paths.second.read"),
             Catch::Matchers::StartsWith("{value: 1 GB/s,") && Containing("uncertainty: 20 %"));
  CHECK(value_of(set, "machine.gpus.memory") == "none");
  // The executor multiplies in fp32: that is the rate of both types.
  std::string with_tiles = native_profile();
  const auto replace = [&](const std::string& from, const std::string& to) {
    with_tiles.replace(with_tiles.find(from), from.size(), to);
  };
  replace("peak_16: {value: 50", "peak_16: {value: 400");
  replace(
      "gemm_efficiency: {points: [[33 MFLOP, 0.5]",
      "gemm_efficiency_32: {value: 0.9, source: x}\n  gemm_efficiency: {points: [[33 MFLOP, 0.1]");
  const std::vector<Override> tiles =
      overrides_of(rates_of_profile(folder.write("tiles.yaml", with_tiles), paths));
  CHECK_THAT(value_of(tiles, "machine.gpus.peak_16"),
             Catch::Matchers::StartsWith("{value: 50 GFLOP/s,"));
  CHECK_THAT(value_of(tiles, "machine.gpus.gemm_efficiency"),
             Catch::Matchers::StartsWith("{value: 0.9,"));
  const std::string other = folder.write("other.yaml", native_profile("0123456789ab"));
  CHECK_THROWS_WITH(rates_of_profile(other, paths), Containing("measured on host 0123456789ab"));
}
