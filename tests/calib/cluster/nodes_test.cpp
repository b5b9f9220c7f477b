#include <vector>

#include "calib/cluster/nodes.hpp"
#include "models/base/launch.hpp"
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

TEST_CASE("canaries of nodes stay apart, each under the name of its node", "[cluster]") {
  auto a = node("a", {1}), b = node("b", {1});
  a.measurements.canaries = {{"canary.fma", {0, 1}, {10, 11}}};
  b.measurements.canaries = {{"canary.fma", {0, 1}, {20, 21}}};
  const Measurements all = pooled({a, b});
  REQUIRE(all.canaries.size() == 2);
  CHECK(all.canaries[0].name == "a.canary.fma");
  CHECK(all.canaries[1].name == "b.canary.fma");
}

TEST_CASE("a launcher is recognised by rank and number of processes", "[cluster]") {
  CHECK(is_launched({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  // As Slurm 22.05 sets them: srun, srun --mpi=pmix, a batch script, a shell of salloc.
  CHECK(is_launched({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "64"}}));
  CHECK(is_launched({{"PMIX_RANK", "3"}, {"SLURM_STEP_NUM_TASKS", "64"}}));
  CHECK_FALSE(is_launched({{"SLURM_NTASKS", "64"}, {"SLURM_PROCID", "0"}}));
  CHECK_FALSE(is_launched({{"SLURM_NTASKS", "64"}}));
  // mpirun -n 1 inside a step of two.
  CHECK_FALSE(is_launched({{"OMPI_COMM_WORLD_SIZE", "1"},
                           {"OMPI_COMM_WORLD_RANK", "0"},
                           {"SLURM_PROCID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "2"}}));
  CHECK_FALSE(is_launched({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  CHECK_FALSE(is_launched({}));
}

TEST_CASE("srun without a kind of PMI is refused before MPI ends the process", "[cluster]") {
  CHECK_THAT(why_no_mpi({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "64"}}),
             Containing("srun --mpi=pmix"));
  CHECK(why_no_mpi({{"PMIX_RANK", "3"}, {"SLURM_STEP_NUM_TASKS", "64"}}).empty());
  CHECK(why_no_mpi({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).empty());
}
