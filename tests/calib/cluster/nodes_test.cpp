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

TEST_CASE("one process speaks for those that were started with the same command", "[cluster]") {
  const auto speaks = [](const std::string& rank, const std::string& sizes) {
    return is_speaker({{"OMPI_COMM_WORLD_RANK", rank},
                       {"OMPI_COMM_WORLD_SIZE", "4"},
                       {"OMPI_APP_CTX_NUM_PROCS", sizes}});
  };
  CHECK(speaks("0", "4"));
  CHECK_FALSE(speaks("1", "4"));
  CHECK_FALSE(speaks("3", "4"));
  // mpirun -n 1 A : -n 2 B : -n 1 C has the ranks 0, 1 to 2, and 3.
  CHECK(speaks("1", "1 2 1"));
  CHECK_FALSE(speaks("2", "1 2 1"));
  CHECK(speaks("3", "1 2 1"));
  CHECK(is_speaker({}));
  CHECK(is_speaker({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "64"}}));
  CHECK_FALSE(is_speaker({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "64"}}));
  CHECK_FALSE(is_speaker({{"PMI_RANK", "3"}, {"PMI_SIZE", "64"}}));
}

TEST_CASE("srun without a kind of PMI is refused before MPI ends the process", "[cluster]") {
  CHECK_THAT(why_no_mpi({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "64"}}),
             Containing("srun --mpi=pmix"));
  CHECK(why_no_mpi({{"PMIX_RANK", "3"}, {"SLURM_STEP_NUM_TASKS", "64"}}).empty());
  CHECK(why_no_mpi({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}).empty());
}
