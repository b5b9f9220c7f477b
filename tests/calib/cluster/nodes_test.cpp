#include <vector>

#include "calib/cluster/nodes.hpp"
#include "calib/cluster/team.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

NodeMeasurements node(const std::string& id, std::vector<double> blocks,
                      Unit unit = Unit::flops_per_second) {
  RowResult row{{.quantity = "fma", .unit = unit}, {}, {}};
  std::int32_t pass = 0;
  for (const double v : blocks) {
    row.blocks.push_back({.pass = pass++,
                          .is_converged = true,
                          .samples = {{.value = v, .spoiled = {}, .series = {}}}});
  }
  NodeMeasurements result{id, {}};
  result.measurements.rows.push_back(row);
  result.measurements.is_complete = true;
  return result;
}

}  // namespace

TEST_CASE("a node at half the rate of the others is named with the quantity and the factor",
          "[cluster]") {
  const auto found = outliers({node("a", {100, 100}), node("b", {50, 50}), node("c", {101, 100})});
  REQUIRE(found.size() == 1);
  CHECK(found[0].node == "b");
  CHECK(found[0].row == "fma");
  CHECK(found[0].factor == Approx(2.0));
  CHECK(outlier_text(found).find("b is slow at") != std::string::npos);
}

TEST_CASE("of two nodes the slower one is the outlier", "[cluster]") {
  const auto found = outliers({node("a", {100}), node("b", {80})});
  REQUIRE(found.size() == 1);
  CHECK(found[0].node == "b");
}

TEST_CASE("longer is slower where seconds are measured", "[cluster]") {
  const auto found = outliers({node("a", {1, 1}, Unit::seconds), node("b", {2, 2}, Unit::seconds)});
  REQUIRE(found.size() == 1);
  CHECK(found[0].node == "b");
}

TEST_CASE("nodes within their own noise are alike", "[cluster]") {
  // Each varies by 14 % from pass to pass (90 and 110); three times that is 42 %.
  CHECK(outliers({node("a", {90, 110}), node("b", {80, 100})}).empty());
  CHECK(outliers({node("a", {100}), node("b", {96})}).empty());  // below 5 %
}

TEST_CASE("pooled measurements hold the blocks of all nodes and name the node of a fault",
          "[cluster]") {
  auto broken = node("b", {2, 3});
  broken.measurements.rows[0].faults.push_back("contents differ");
  const Measurements all = pooled({node("a", {1}), broken});
  REQUIRE(all.rows.size() == 1);
  CHECK(all.rows[0].blocks.size() == 3);
  REQUIRE(all.rows[0].faults.size() == 1);
  CHECK(all.rows[0].faults[0] == "b: contents differ");
}

TEST_CASE("a launcher is recognised by rank and number of processes", "[cluster]") {
  CHECK(is_launched({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  CHECK(is_launched({{"SLURM_NTASKS", "64"}, {"SLURM_PROCID", "3"}}));
  CHECK_FALSE(is_launched({{"SLURM_NTASKS", "64"}}));  // a shell inside an allocation
  CHECK_FALSE(is_launched({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  CHECK_FALSE(is_launched({}));
}
