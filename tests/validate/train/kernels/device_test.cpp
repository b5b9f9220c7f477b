// Training's arithmetic on a GPU: every primitive beside the CPU's, and offloaded training beside
// training without offload, bit for bit.
#include "tests/catch.hpp"
#include "tests/validate/execute/executed.hpp"
#include "tests/validate/train/kernels/primitives.hpp"
#include "tests/validate/train/offloaded_cases.hpp"
#include "validate/cuda/cuda_training.hpp"

using namespace tidegate;

TEST_CASE("a GPU's primitives are the CPU's, as far as sums and functions allow", "[device]") {
  constexpr double functions = 0x1p-19, truncated = 2;
  const auto gpu = cuda_training();
  train::check_primitives(*gpu, functions, truncated);
}

TEST_CASE("offloaded training on a GPU is the same bit for bit as without offload", "[device]") {
  const auto gpu = cuda_training();
  for (const offloaded::Case& c : {
           offloaded::Case{"0", "resident", "resident", "{name: recompute, mode: selective}"},
           offloaded::Case{"1", "resident", "zero_offload", offloaded::stored},
           offloaded::Case{"3", "resident",
                           "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 500, "
                           "buffer_count: 4}",
                           "keep"},
       }) {
    INFO("ZeRO-" << c.zero << ", " << c.optimizer << ", " << c.activations);
    auto settings = offloaded::overrides(c, 2, 2, "bf16");
    settings.emplace_back("iterations", "3");
    const meant::Run run = meant::run(settings);
    train::TrainingOptions options = executed::options_of(run);
    options.backend = gpu.get();
    const train::Training alone = train::train(run.scenario.workload, options);
    const train::Training plan =
        train_on(executed::rig_of(run), run.plan, run.scenario.workload, run.graph, options)
            .training;
    CHECK(plan.losses == alone.losses);
    CHECK(plan.state == alone.state);
    CHECK(plan.losses.size() == 3 * 2 * 2);
  }
}
