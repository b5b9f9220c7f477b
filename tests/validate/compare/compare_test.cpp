// Prediction beside measurement: errors, order, memory, and which device is to blame.
#include <vector>

#include "sim/engine/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/sim/engine/toy.hpp"
#include "validate/compare/comparison.hpp"

using namespace tidegate;

namespace {

// Kernels of 10 ms, then a read of 20 ms and a write of 40 ms of one drive, ten times over. Kernels
// run beside the files of the round before: a round takes 60 ms of drive, and the kernels of the
// first round come before all: 610 ms.
struct Rounds {
  toy::Toy toy;
  ResourceId gpu, drive;
  Plan plan;

  Rounds() {
    gpu = toy.resource({.name = "gpu0.compute"});
    drive = toy.resource({.name = "nvme0"});
    const LaneId kernels = toy.lane(), files = toy.lane();
    const PoolId pool = toy.builder.pool("host", {}, Bytes(1e9));
    const OwnerId owner = toy.builder.owner("buffers");
    for (int i = 0; i < 10; ++i) {
      const BufferId buffer = toy.builder.buffer(pool, owner, Bytes(1000));
      const TaskId kernel = toy.add(kernels, toy::flow(0.01, {{gpu}}));
      const TaskId read =
          toy.add(files, toy::flow(0.02, {{drive, 1, 0}}), {kernel}, {allocate(buffer)});
      toy.add(files, toy::flow(0.04, {{drive, 1, 1}}), {read}, {free(buffer)});
    }
    plan = toy.finish();
  }
  Timeline run(double gpu_factor, double read_factor, double write_factor) const {
    std::vector<Demand> demands = toy.demands;
    for (std::size_t i = 0; i < demands.size(); ++i) {
      const double factors[] = {gpu_factor, read_factor, write_factor};
      demands[i].alone *= factors[i % 3];
    }
    return simulate(plan, demands, toy.resources);
  }
  Comparison against(const Timeline& measured, const CompareOptions& options = {}) const {
    return compare(plan, run(1, 1, 1), measured, toy.demands, toy.resources, options);
  }
};

}  // namespace

TEST_CASE("what runs as predicted agrees", "[compare]") {
  const Rounds rounds;
  const Comparison c = rounds.against(rounds.run(1, 1, 1));
  CHECK(c.step.predicted.value() == Approx(0.61));
  CHECK(c.step.error() == 0);
  CHECK(c.verdict == Verdict::agrees);
  CHECK(c.suspects.empty());
  CHECK(c.reordered.empty());
  CHECK(c.same_peaks());
}

TEST_CASE("the measurement is inside or outside the prediction's interval", "[compare]") {
  // 610 ms predicted; writes that take 1.25 times as long make it 710 ms.
  const Rounds rounds;
  CompareOptions options;
  options.interval = PredictionInterval{Seconds(0.6), Seconds(0.7)};
  const Comparison inside = rounds.against(rounds.run(1, 1, 1), options);
  CHECK_THAT(to_text(inside), Containing("600 ms to 700 ms: the measurement is inside"));
  const Comparison outside = rounds.against(rounds.run(1, 1, 1.25), options);
  CHECK_THAT(to_text(outside), Containing("the measurement is outside"));
  CHECK_THAT(to_json(outside), Containing("\"contains_measured\": false"));
  CHECK_THAT(to_json(rounds.against(rounds.run(1, 1, 1))), Containing("\"interval\": null"));
}

TEST_CASE("the error is signed and that of the prediction", "[compare]") {
  // Writes take 1.25 times as long: rounds of 70 ms, 710 ms in all; 610 / 710 - 1.
  const Rounds rounds;
  const Comparison c = rounds.against(rounds.run(1, 1, 1.25));
  CHECK(c.step.measured.value() == Approx(0.71));
  CHECK(c.step.error().value() == Approx(0.61 / 0.71 - 1));
  CHECK(c.verdict == Verdict::differs);
}

TEST_CASE("what was not measured has no error and agrees with nothing", "[compare]") {
  CHECK_FALSE(Pair{Seconds(1), Seconds(0)}.error());
  CHECK_THAT(to_json(Comparison{}), Containing("\"error\": null"));
  // Tasks that did not run, of a plan whose steps take no time either.
  const Rounds rounds;
  const Comparison c = rounds.against(rounds.run(0, 0, 0));
  REQUIRE(c.step.measured == Seconds(0));
  CHECK(c.verdict == Verdict::inconclusive);
}

TEST_CASE("a device whose tasks are all off is named, with its direction", "[compare]") {
  const Rounds rounds;
  SECTION("writes 20 % slower") {
    const Comparison c = rounds.against(rounds.run(1, 1, 1.2));
    REQUIRE(c.suspects.size() == 1);
    CHECK(c.suspects[0].device == "nvme0 writes");
    CHECK(c.suspects[0].tasks == 10);
    CHECK(c.suspects[0].ratio == Approx(1.2));
    CHECK(c.suspects[0].exposed.value() == Approx(0.48));  // ten writes of 48 ms
  }
  SECTION("kernels 20 % faster, though they are hidden") {
    const Comparison c = rounds.against(rounds.run(0.8, 1, 1));
    REQUIRE(c.suspects.size() == 1);
    CHECK(c.suspects[0].device == "gpu0.compute");
    CHECK(c.suspects[0].ratio == Approx(0.8));
  }
  SECTION("5 % is within what the rule lets pass") {
    CHECK(rounds.against(rounds.run(1, 1.05, 1)).suspects.empty());
  }
}

TEST_CASE("tasks of a device that differ among themselves accuse nobody", "[compare]") {
  // Every other read takes 1.4 times as long: the median is off, and so is the middle half.
  const Rounds rounds;
  Timeline measured = rounds.run(1, 1, 1);
  std::vector<Demand> demands = rounds.toy.demands;
  for (std::size_t i = 1; i < demands.size(); i += 6) demands[i].alone *= 1.4;
  measured = simulate(rounds.plan, demands, rounds.toy.resources);
  CHECK(rounds.against(measured).suspects.empty());
}

TEST_CASE("lateness of the host is no device's fault and bounds what can be shown", "[compare]") {
  // Reads end 6 ms after they were done: 30 % of 20 ms, but the host's. 60 ms of 670 on the path.
  const Rounds rounds;
  const Timeline measured = rounds.run(1, 1.3, 1);
  CompareOptions options;
  options.lateness.assign(rounds.plan.size(), 0);
  for (std::size_t i = 1; i < rounds.plan.size(); i += 3) options.lateness[i] = 6'000'000'000;
  const Comparison c = rounds.against(measured, options);
  CHECK(c.suspects.empty());
  CHECK(c.floor == Approx(0.06 / 0.67));
  CHECK(c.verdict == Verdict::inconclusive);
  options.gate = 0.10;
  CHECK(rounds.against(measured, options).verdict == Verdict::agrees);  // 610 / 670: -9 %
}

TEST_CASE("another order, other peaks and other choices are found", "[compare]") {
  toy::Toy toy;
  const LaneId lane = toy.lane(), slow = toy.lane();
  const PoolId pool = toy.builder.pool("host", {}, Bytes(1e9));
  const ChoiceId choice = toy.builder.choice(Choice::Rule::unfinished);
  toy.builder.watch(choice, toy.add(slow, toy::wait(0.1)));
  toy.add(lane, toy::wait(0.05), {}, {decide(choice)});
  toy.add(lane, toy::wait(0.05), {}, {}, 0, When::yes(choice));
  const Plan plan = toy.finish();
  const Timeline predicted = simulate(plan, toy.demands, {});
  Timeline measured = predicted;
  measured.choices[0] = 0;  // the last task is skipped
  measured.pools[index(pool)].peak = 7;
  const Comparison c = compare(plan, predicted, measured, toy.demands, {});
  CHECK(c.reordered == std::vector<std::string>{plan.lanes[0].name});
  CHECK((c.choices == 1 && c.other_choices == 1));
  CHECK_FALSE(c.same_peaks());
  CHECK_THAT(to_text(c), Containing("Pool host held 7 B at most, 0 B were predicted"));
}

TEST_CASE("what came in the other order is told with how near it was", "[compare][flips]") {
  // A store of 100 ms whose buffer of 100 B goes with it; a kernel of 90 ms, after which a task
  // asks whether the store has ended and takes another 100 B. Predicted: asked 10 ms before the
  // end, so both buffers lie in memory at once. Measured, the store takes 80 ms: asked 10 ms after.
  toy::Toy toy;
  const LaneId stores = toy.lane(), kernels = toy.lane();
  const PoolId pool = toy.builder.pool("host", {}, Bytes(1e9));
  const OwnerId owner = toy.builder.owner("buffers");
  const BufferId stored = toy.builder.buffer(pool, owner, Bytes(100)),
                 loaded = toy.builder.buffer(pool, owner, Bytes(100));
  const ChoiceId choice = toy.builder.choice(Choice::Rule::unfinished);
  const TaskId store = toy.add(stores, toy::wait(0.1), {}, {allocate(stored), free(stored)});
  toy.builder.watch(choice, store);
  const TaskId kernel = toy.add(kernels, toy::wait(0.09));
  toy.add(kernels, toy::wait(0.05), {kernel}, {decide(choice), allocate(loaded), free(loaded)});
  const Plan plan = toy.finish();
  const Timeline predicted = simulate(plan, toy.demands, {});
  std::vector<Demand> faster = toy.demands;
  faster[index(plan.task(store).work)].alone = Seconds(0.08);
  const Timeline measured = simulate(plan, faster, {});
  const Comparison c = compare(plan, predicted, measured, toy.demands, {});
  REQUIRE(c.flips.size() == 2);
  CHECK(c.flips[0].of == "choice");
  CHECK(c.flips[1].of == "host");
  for (const Flip& flip : c.flips) {
    CHECK_THAT(flip.first, Catch::Matchers::StartsWith("end of"));
    CHECK_THAT(flip.second, Catch::Matchers::StartsWith("start of"));
    CHECK(flip.predicted.value() == Approx(-0.01));
    CHECK(flip.measured.value() == Approx(0.01));
  }
  CHECK_THAT(to_text(c), Containing("comes -10 ms after the end of") && Containing("10 ms as"));
  CHECK(compare(plan, predicted, predicted, toy.demands, {}).flips.empty());
}
