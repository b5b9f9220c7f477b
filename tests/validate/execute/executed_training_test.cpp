// The plan of every policy, run by the executor with threads or processes, arenas, files and locks,
// trains bit for bit as a loop that knows no plan.
#include <algorithm>

#include "sim/timeline/laws.hpp"
#include "tests/catch.hpp"
#include "tests/validate/execute/executed.hpp"
#include "tests/validate/train/offloaded_cases.hpp"

using namespace tidegate;
using namespace tidegate::offloaded;

namespace {

// The reference is the same for every policy that reduces alike.
const train::Training& alone(const meant::Run& run) {
  struct Known {
    std::int64_t ranks, accumulation;
    DType dtype;
    bool reduces;
    train::Training training;
  };
  static std::vector<Known> all;
  const train::TrainingOptions options = executed::options_of(run);
  const Workload& w = run.scenario.workload;
  const auto is_like = [&](const Known& k) {
    return k.ranks == options.ranks && k.accumulation == w.accumulation && k.dtype == w.dtype &&
           k.reduces == options.reduces_every_micro_step;
  };
  auto known = std::ranges::find_if(all, is_like);
  if (known == all.end()) {
    all.push_back({options.ranks, w.accumulation, w.dtype, options.reduces_every_micro_step,
                   train::train(w, options)});
    known = all.end() - 1;
  }
  return known->training;
}

void check(const Case& c, int ranks, int accumulation, const char* dtype, Ranks as = {}) {
  INFO("ZeRO-" << c.zero << ", parameters " << c.parameters << ", " << c.optimizer << ", "
               << c.activations << ", " << ranks << (as.are_processes ? " processes, " : " ranks, ")
               << accumulation << " micro-batches, " << dtype);
  const meant::Run run = meant::run(overrides(c, ranks, accumulation, dtype));
  const TrainingRun real = train_on(executed::rig_of(run), run.plan, run.scenario.workload,
                                    run.graph, executed::options_of(run), as);
  const train::Training& reference = alone(run);
  CHECK(reference.losses.size() == static_cast<std::size_t>(steps * ranks * accumulation));
  CHECK(real.training.losses == reference.losses);
  CHECK(real.training.state == reference.state);
  const std::vector<Demand> free_of_charge(run.plan.works.size());
  const auto broken = broken_laws(run.plan, real.timeline, free_of_charge, {});
  CHECK(broken.empty());
  for (const std::string& law : broken) FAIL_CHECK(law);
  // Kept apart on a drive, two savings of one storage are one tensor in GPU memory: the plan has
  // one buffer for it, the meaning two contents.
  const bool is_kept_apart =
      std::string(c.activations).find("deduplicate: false") != std::string::npos;
  CHECK((real.beside > 0) == is_kept_apart);
}

void check_ranks(const Case& c) {
  check(c, 1, 1, "bf16");
  check(c, 2, 2, "bf16");
}

const char* const ssdtrain = "{name: ssdtrain, threshold: 1, to: nvme, profile_iteration: 1}";
const Case both = {"3", "resident", "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 500}",
                   ssdtrain};

}  // namespace

TEST_CASE("the executor trains bit for bit wherever states and parameters live", "[execute]") {
  for (const Case& c : states) check_ranks(c);
}

TEST_CASE("the executor trains bit for bit wherever activations live", "[execute]") {
  for (const char* kept : activations) check_ranks({"0", "resident", "resident", kept});
}

TEST_CASE("the executor trains bit for bit with activations and states offloaded together",
          "[execute]") {
  check_ranks(both);
  check(both, 4, 1, "bf16");
  check(both, 2, 1, "fp32");
  check_ranks({"3", "{name: nvme, path: nvme}",
               "{name: zero_infinity, path: nvme, sub_group_size: 500}", ssdtrain});
  check_ranks({"2", "resident", "zero_offload", "{name: recompute, mode: full}"});
}

TEST_CASE("ranks that are processes train bit for bit", "[execute][processes]") {
  const Ranks processes{.are_processes = true};
  check({"0", "resident", "resident", "keep"}, 2, 1, "bf16", processes);
  check({"2", "resident", "zero_offload", "{name: recompute, mode: full}"}, 2, 2, "bf16",
        processes);
  check({"3", "{name: nvme, path: nvme}", "{name: zero_infinity, path: nvme, sub_group_size: 500}",
         ssdtrain},
        2, 1, "fp32", processes);
  check(both, 4, 1, "bf16", processes);
}
