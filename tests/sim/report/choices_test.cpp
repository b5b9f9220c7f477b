#include <sstream>

#include <nlohmann/json.hpp>

#include "sim/report/trace.hpp"

#include "tests/catch.hpp"
#include "tests/sim/report/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

// A tensor of 4 GB is made on the GPU (0 - 1), written to a drive from 1 on, and wanted at 4, when
// the load (2 s) is due unless the write is not over. Used for 1 s. In seconds:
//
//            make   write   load    use     end
//   loaded   0 - 1  1 - 3   4 - 6   6 - 7   7
//   kept     0 - 1  1 - 6   4 - 4   4 - 5   6
//
// The write takes the drive alone for 2 s; in the second case something else slows it down.
Run offload(bool is_kept) {
  RunBuilder run;
  PlanBuilder& plan = run.plan;
  const PoolId gpu = plan.pool("gpu0", {Tier::gpu, 0}, 10_GB);
  const OwnerId owner = plan.owner("activations");
  const BufferId made = plan.buffer(gpu, owner, 4_GB), loaded = plan.buffer(gpu, owner, 5_GB);
  const TokenId slots = plan.tokens("slots", 1);
  const ChoiceId late = plan.choice(Choice::Rule::unfinished);
  const LaneId compute = plan.lane("compute", 0), writes = plan.lane("writes", 0),
               reads = plan.lane("reads", 0), cpu = plan.lane("cpu", 0);
  const TaskId make = run.add({"make", compute}, Compute{0, {Gemm{1, 1, 1}}}, demand(0, 1), 0, 1,
                              {}, {allocate(made)});
  const TaskId write =
      run.add({"write", writes},
              FileIo{.direction = Direction::write, .memory = {Tier::gpu, 0}, .bytes = 4_GB},
              demand(1, 2), 1, is_kept ? 6 : 3, {make}, {tidegate::free(made, When::no(late))});
  plan.watch(late, write);
  const TaskId ask = run.add({"ask", cpu}, Delay{4_s}, {}, 4, 4, {}, {decide(late)});
  const TaskId load =
      run.add({.name = "load", .lane = reads, .when = When::no(late)},
              FileIo{.memory = {Tier::gpu, 0}, .bytes = 4_GB}, demand(1, 2), 4, is_kept ? 4 : 6,
              {ask}, {allocate(loaded), acquire(slots), release(slots)});
  run.add({"use", compute}, Compute{0, {Gemm{1, 1, 2}}}, demand(0, 1), is_kept ? 4 : 6,
          is_kept ? 5 : 7, {load},
          {tidegate::free(made, When::yes(late)), tidegate::free(loaded, When::no(late))});
  Run finished = run.finish(1, 1, {{"gpu0"}, {"drive"}});
  finished.timeline.choices = {is_kept ? std::uint8_t{1} : std::uint8_t{0}};
  return finished;
}

Seconds exposed(const Report& report, std::size_t resource) {
  return report.resources.at(resource).exposed;
}

}  // namespace

TEST_CASE("what is skipped moves no bytes and uses no resource", "[report]") {
  const Report loaded = offload(false).report(), kept = offload(true).report();
  CHECK(loaded.iteration_time == 7_s);
  CHECK(kept.iteration_time == 6_s);
  CHECK(loaded.paths.at(0).read == 4_GB);
  CHECK(loaded.paths.at(0).written == 4_GB);
  CHECK(kept.paths.at(0).read == 0_GB);
  CHECK(kept.paths.at(0).written == 4_GB);
  // 2 s of writing and 2 s of reading, or of writing alone.
  CHECK(loaded.resources.at(1).work == 4_s);
  CHECK(kept.resources.at(1).work == 2_s);
}

TEST_CASE("memory follows the outcome of a choice", "[report]") {
  // 4 GB from 0 to 3 and 5 GB from 4, or 4 GB from 0 to 5 and nothing more.
  const Report loaded = offload(false).report(), kept = offload(true).report();
  CHECK(loaded.pools.at(0).peak == 5_GB);
  CHECK(loaded.pools.at(0).peak_at == 4_s);
  CHECK(kept.pools.at(0).peak == 4_GB);
  CHECK(kept.pools.at(0).peak_at == 0_s);
}

TEST_CASE("a skipped task is on no path and in no bound", "[report]") {
  // The chain is ask 0, load 2, use 1; or write after make, 1 + 2, when the load is skipped.
  const Report loaded = offload(false).report(), kept = offload(true).report();
  CHECK(loaded.bound.chain == 3_s);
  CHECK(kept.bound.chain == 3_s);
  CHECK(loaded.bound.time == 4_s);  // the drive's work
  CHECK(kept.bound.time == 3_s);
  // Back from 7: use, load, ask at 4, which nothing explains. From 6: write, make.
  CHECK(exposed(loaded, 1) == 2_s);
  CHECK(exposed(loaded, 0) == 1_s);
  CHECK(exposed(kept, 1) == 5_s);
  CHECK(exposed(kept, 0) == 1_s);
}

TEST_CASE("a skipped task is not drawn", "[trace]") {
  for (const bool is_kept : {false, true}) {
    const Run run = offload(is_kept);
    std::ostringstream out;
    write_trace(out, run.plan, run.timeline, run.demands, run.resources);
    const nlohmann::json trace = nlohmann::json::parse(out.str());
    const auto is_load = [](const nlohmann::json& e) {
      return e["ph"] == "X" && e["name"] == "load";
    };
    CHECK(std::ranges::count_if(trace["traceEvents"], is_load) == (is_kept ? 0 : 1));
  }
}

TEST_CASE("a timeline without the outcomes of its plan is refused", "[report]") {
  Run run = offload(true);
  run.timeline.choices.clear();
  CHECK_THROWS_WITH(run.report(), Containing("an outcome for every choice"));
}
