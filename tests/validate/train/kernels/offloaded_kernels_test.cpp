// Offloaded training by what computes on a GPU, run on the host in its place: equal bit for bit to
// training without a plan by the same kernels and products.
#include <cmath>

#include "tests/catch.hpp"
#include "tests/validate/execute/executed.hpp"
#include "tests/validate/train/kernels/host_kernels.hpp"
#include "tests/validate/train/offloaded_cases.hpp"

using namespace tidegate;
using namespace tidegate::offloaded;
using tidegate::train::OnHost;

namespace {

struct Trained {
  train::Training plan, alone, cores;
  int adams_of_plan = 0, adams_alone = 0;  // on the device
};

Trained trained(const Case& c, int ranks, int accumulation, const char* dtype) {
  const meant::Run run = meant::run(overrides(c, ranks, accumulation, dtype));
  train::TrainingOptions options = executed::options_of(run);
  Trained all;
  all.cores = train::train(run.scenario.workload, options);
  const OnHost host;
  options.backend = &host.backend;
  all.plan =
      train_on(executed::rig_of(run), run.plan, run.scenario.workload, run.graph, options).training;
  all.adams_of_plan = host.device.adams;
  all.alone = train::train(run.scenario.workload, options);
  all.adams_alone = host.device.adams - all.adams_of_plan;
  CHECK(host.device.products > 0);
  return all;
}

// fp32: sums in another order, carried through twenty steps, as against PyTorch
// (validate/train/against_torch.py). bf16: one unit in the last place, 2^-7 of a number, of a loss
// of some 3 that is itself not rounded.
void check_losses(const Trained& t, const char* dtype) {
  const double tolerance = std::string(dtype) == "fp32" ? 1e-4 : 0x1p-7;
  REQUIRE(t.plan.losses.size() == t.cores.losses.size());
  for (std::size_t i = 0; i < t.cores.losses.size(); ++i)
    CHECK(std::fabs(t.plan.losses[i] - t.cores.losses[i]) <= tolerance * t.cores.losses[i]);
}

// Products add in another order than the CPU's libraries, so that in fp32 some bits must differ:
// else nothing was computed by the kernels. In bf16 rounding hides most of it.
void check(const Case& c, int ranks, int accumulation, const char* dtype) {
  INFO("ZeRO-" << c.zero << ", parameters " << c.parameters << ", " << c.optimizer << ", "
               << c.activations << ", " << ranks << " ranks, " << dtype);
  const Trained t = trained(c, ranks, accumulation, dtype);
  CHECK(t.plan.losses == t.alone.losses);
  CHECK(t.plan.state == t.alone.state);
  if (std::string(dtype) == "fp32") CHECK_FALSE(t.plan.state == t.cores.state);
  check_losses(t, dtype);
}

}  // namespace

TEST_CASE("training under a plan by a GPU's kernels is the same bit for bit as without one",
          "[train][kernels]") {
  for (const Case& c : {
           Case{"0", "resident", "resident", "{name: recompute, mode: selective}"},
           Case{"1", "resident", "zero_offload", stored},
           Case{"3", "{name: nvme, path: nvme}",
                "{name: zero_infinity, path: nvme, sub_group_size: 500, buffer_count: 4}",
                "{name: swap_all, to: host, threshold: 1}"},
           Case{"0", "resident", "{name: resident, algorithm: sgd}", "keep"},
       }) {
    check(c, 1, 1, "fp32");
    check(c, 2, 2, "bf16");
  }
}

TEST_CASE("contents of GPU pools lie in the GPU's memory, buffer by buffer", "[train][kernels]") {
  const meant::Run run = meant::run(
      overrides({"0", "resident", "resident", "{name: keep, by_operator: true}"}, 1, 1, "bf16"));
  train::TrainingOptions options = executed::options_of(run);
  const OnHost host;
  options.backend = &host.backend;
  train::train(run.scenario.workload, options);
  const std::int64_t of_primitives = host.device.peak;  // operands and results of one at a time
  const TrainingRun real =
      train_on(executed::rig_of(run), run.plan, run.scenario.workload, run.graph, options);
  for (std::size_t i = 0; i < run.plan.pools.size(); ++i) {
    if (run.plan.pools[i].place.tier != Tier::gpu) continue;
    CHECK(real.timeline.pools[i].peak > of_primitives);
    CHECK(host.device.peak >= real.timeline.pools[i].peak);
  }
}

TEST_CASE("a GPU with less memory than the plan needs stops the run", "[train][kernels]") {
  const meant::Run run = meant::run(overrides({"0", "resident", "resident", "keep"}, 1, 1, "bf16"));
  train::TrainingOptions options = executed::options_of(run);
  const OnHost host;
  host.device.capacity = 1000;
  options.backend = &host.backend;
  CHECK_THROWS_WITH(
      train_on(executed::rig_of(run), run.plan, run.scenario.workload, run.graph, options),
      Containing("of pool gpu0 on the GPU: no memory left"));
}

TEST_CASE("a plan's optimizer steps on cores where the plan has its states, else on the GPU",
          "[train][kernels]") {
  const auto adams = [](const char* optimizer) {
    const Trained t = trained({"3", "resident", optimizer, "keep"}, 1, 1, "bf16");
    CHECK(t.adams_alone > 0);
    CHECK(t.plan.state == t.alone.state);  // wherever the steps were made
    return t.adams_of_plan;
  };
  CHECK(adams("resident") > 0);
  CHECK(adams("{name: twin_flow, ratio: 0.5, sub_group_size: 500}") > 0);
  CHECK(adams("{name: zero_offload, sub_group_size: 500}") == 0);
}
