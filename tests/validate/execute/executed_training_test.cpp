// The plan of every policy, run by the executor with threads or processes, arenas, files and locks,
// trains bit for bit as a loop that knows no plan.
#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "sim/timeline/laws.hpp"
#include "tests/catch.hpp"
#include "tests/validate/execute/executed.hpp"
#include "tests/validate/train/offloaded_cases.hpp"
#include "validate/engine/dispatcher.hpp"

using namespace tidegate;
using namespace tidegate::offloaded;

namespace {

// The reference is the same for every policy that reduces alike.
const train::Training& alone(const meant::Run& run) {
  struct Known {
    std::int64_t ranks, accumulation;
    DType dtype;
    bool reduces;
    Update update;
    std::int64_t layers;
    train::Training training;
  };
  static std::vector<Known> all;
  const train::TrainingOptions options = executed::options_of(run);
  const Workload& w = run.scenario.workload;
  const auto is_like = [&](const Known& k) {
    return k.ranks == options.ranks && k.accumulation == w.accumulation && k.dtype == w.dtype &&
           k.reduces == options.reduces_every_micro_step && k.update == options.update &&
           k.layers == w.network.layers;
  };
  auto known = std::ranges::find_if(all, is_like);
  if (known == all.end()) {
    all.push_back({options.ranks, w.accumulation, w.dtype, options.reduces_every_micro_step,
                   options.update, w.network.layers, train::train(w, options)});
    known = all.end() - 1;
  }
  return known->training;
}

// Pages that the plan says are written: by its tasks, and by the set-up, which puts what stands on
// a storage path into the file of its rank, 4 bytes an element of a master and 2 of a shard in
// bf16.
std::int64_t priced_writes(const meant::Run& run, const Timeline& timeline) {
  const Plan& plan = run.plan;
  const double narrow = bytes_per_element(run.scenario.workload.dtype);
  std::int64_t pages = 0;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (is_skipped(plan, TaskId{t}, timeline) || plan.meaning.of(TaskId{t}).empty()) continue;
    const auto* io = std::get_if<FileIo>(&plan.work(TaskId{t}));
    if (io != nullptr && io->direction == Direction::write)
      pages += whole_pages(static_cast<std::int64_t>(std::ceil(io->bytes.value())));
    std::map<std::pair<PoolId, std::uint16_t>, double> standing;
    for (const Deed& deed : plan.meaning.of(TaskId{t})) {
      if (deed.verb != Deed::Verb::initialise) continue;
      const Access& a = plan.meaning.of(deed).front();
      if (plan.pools[index(a.pool)].place.tier != Tier::storage) continue;
      const Content& content = plan.meaning.content(a.content);
      const double width = content.kind == Content::Kind::master    ? 4
                           : content.kind == Content::Kind::moments ? 8
                                                                    : narrow;
      standing[{a.pool, content.rank}] += width * static_cast<double>(content.count);
    }
    for (const auto& [file, bytes] : standing)
      pages += whole_pages(static_cast<std::int64_t>(bytes));
  }
  return pages;
}

void check(const meant::Run& run, RankOptions as, bool is_kept_apart = false) {
  const TrainingRun real = train_on(executed::rig_of(run), run.plan, run.scenario.workload,
                                    run.graph, executed::options_of(run), as);
  const train::Training& reference = alone(run);
  const std::int64_t data = executed::options_of(run).ranks;
  CHECK(static_cast<std::int64_t>(reference.losses.size()) ==
        steps * data * run.scenario.workload.accumulation);
  CHECK(real.training.losses == reference.losses);
  CHECK(real.training.state == reference.state);
  CHECK(real.file_bytes_written == priced_writes(run, real.timeline));
  const std::vector<Demand> free_of_charge(run.plan.works.size());
  const auto broken = broken_laws(run.plan, real.timeline, free_of_charge, {});
  CHECK(broken.empty());
  for (const std::string& law : broken) FAIL_CHECK(law);
  CHECK((real.beside > 0) == is_kept_apart);
}

void check(const Case& c, int ranks, int accumulation, const char* dtype, RankOptions as = {}) {
  INFO("ZeRO-" << c.zero << ", parameters " << c.parameters << ", " << c.optimizer << ", "
               << c.activations << ", " << ranks << (as.are_processes ? " processes, " : " ranks, ")
               << accumulation << " micro-batches, " << dtype);
  // Kept apart on a drive, two savings of one storage are one tensor in GPU memory: the plan has
  // one buffer for it, the meaning two contents.
  const bool is_kept_apart =
      std::string(c.activations).find("deduplicate: false") != std::string::npos;
  check(meant::run(overrides(c, ranks, accumulation, dtype)), as, is_kept_apart);
}

void check_ranks(const Case& c) {
  check(c, 1, 1, "bf16");
  check(c, 2, 2, "bf16");
}

bool fits(const meant::Run& run) {
  for (std::size_t p = 0; p < run.plan.pools.size(); ++p) {
    if (static_cast<double>(run.timeline.pools[p].peak) > run.plan.pools[p].capacity.value())
      return false;
  }
  return true;
}

// Capuchin makes tensors again where keeping them does not fit: in the most memory below what
// keeping all takes in which its plan does and fits. Copies of 1 kB/s hide nothing that is swapped.
meant::Run again_to_fit(const char* dtype, int ranks) {
  const Case kept = {"0", "resident", "resident", "{name: keep, by_operator: true}"};
  const meant::Run all = meant::run(overrides(kept, ranks, 1, dtype));
  const auto gpu =
      std::ranges::find(all.plan.pools, Tier::gpu, [](const Pool& p) { return p.place.tier; });
  const std::int64_t peak =
      all.timeline.pools[static_cast<std::size_t>(gpu - all.plan.pools.begin())].peak;
  for (std::int64_t less = 256; less < 16384; less += 256) {
    const Bytes memory =
        Bytes(static_cast<double>(peak - less)) + all.scenario.machine.gpu(0).context;
    auto changes =
        overrides({"0", "resident", "resident", "{name: capuchin, threshold: 1}"}, ranks, 1, dtype);
    changes.emplace_back("machine.gpus.memory", fmt::format("{} B", memory.value()));
    for (const char* copy : {"machine.gpus.d2h", "machine.gpus.h2d"})
      changes.emplace_back(copy, "1 kB/s");
    meant::Run run = meant::run(changes);
    if (runs_again(run.plan) && fits(run)) return run;
  }
  throw std::runtime_error("there is no memory in which capuchin makes tensors again and fits");
}

const char* const ssdtrain = "{name: ssdtrain, threshold: 1, to: nvme, profile_iteration: 1}";
const Case both = {"3", "resident",
                   "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 500, buffer_count: 4}",
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
               "{name: zero_infinity, path: nvme, sub_group_size: 500, buffer_count: 4}",
               ssdtrain});
  check_ranks({"2", "resident", "zero_offload", "{name: recompute, mode: full}"});
}

TEST_CASE("tensors that single operators make again train bit for bit", "[execute]") {
  for (const int ranks : {1, 2}) {
    for (const char* dtype : {"bf16", "fp32"}) {
      INFO(ranks << " ranks, " << dtype);
      check(again_to_fit(dtype, ranks), {});
      const meant::Run lohan =
          meant::run(again("{name: lohan, to: nvme, threshold: 1}", dtype, ranks));
      REQUIRE(runs_again(lohan.plan));
      check(lohan, {});
    }
  }
}

TEST_CASE("the stages of a pipeline train bit for bit", "[execute][pipeline]") {
  for (const Pipelined& p : pipelines) {
    INFO("ZeRO-" << p.policy.zero << ", " << p.policy.optimizer << ", " << p.policy.activations
                 << ", " << p.ranks << " ranks, " << p.interleave << " pieces a stage");
    check(meant::run(overrides(p)), {});
  }
}

TEST_CASE("the stages of a pipeline are processes", "[execute][pipeline][processes]") {
  check(meant::run(overrides(pipelines[3])), {.are_processes = true});
}

TEST_CASE("ranks that are processes train bit for bit", "[execute][processes]") {
  const RankOptions processes{.are_processes = true};
  check({"0", "resident", "resident", "keep"}, 2, 1, "bf16", processes);
  check({"2", "resident", "zero_offload", "{name: recompute, mode: full}"}, 2, 2, "bf16",
        processes);
  check({"3", "{name: nvme, path: nvme}",
         "{name: zero_infinity, path: nvme, sub_group_size: 500, buffer_count: 4}", ssdtrain},
        2, 1, "fp32", processes);
  check(both, 4, 1, "bf16", processes);
}

TEST_CASE("a store that comes late finds what it stores, though backward has let go of it",
          "[execute]") {
  // Forward and backward of two layers of width 16 take less than the 20 ms.
  auto changes = overrides(
      {"0", "resident", "resident", "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false}"}, 1,
      1, "bf16");
  changes.emplace_back("iterations", "4");
  const meant::Run run = meant::run(changes);
  const Rig rig = executed::rig_of(run);
  TrainingWorker worker(run.plan, rig, run.scenario.workload, run.graph, executed::options_of(run));
  executed::Late late(run.plan, worker, "store");
  Dispatcher dispatcher(run.plan, late);
  dispatcher.to_end();
  CHECK(late.tasks > 0);
  const train::Training reference = train::train(run.scenario.workload, executed::options_of(run));
  CHECK(worker.losses() == reference.losses);
  CHECK(worker.state() == reference.state);
}
