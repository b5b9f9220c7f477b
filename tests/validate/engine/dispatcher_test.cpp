// The rules of a plan in real time, whoever does the works.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/sim/engine/random_plan.hpp"
#include "tests/validate/engine/laws.hpp"
#include "validate/engine/dispatcher.hpp"

using namespace tidegate;

namespace {

// Sleeps instead of working: for the seconds of a task's demand, times `scale`.
class Sleeper : public Worker {
 public:
  Sleeper(const Plan& plan, std::vector<Demand> demands, double scale)
      : plan_(plan), demands_(std::move(demands)), scale_(scale) {}

  void sit_down(Seat) override { ++seated; }
  void allocate(BufferId, TaskId) override { ++allocated; }
  void free(BufferId) override { --allocated; }
  Clock::time_point run(TaskId task, Seat, Clock::time_point start) override {
    if (task == failing) throw MachineError("it broke");
    const Demand& demand = demands_[index(plan_.task(task).work)];
    const auto due =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                    scale_ * (demand.latency + demand.alone).value()));
    while (Clock::now() < due && !is_stopped) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return due;
  }
  void stop() override { is_stopped = true; }

  TaskId failing = Choice::nobody;
  std::atomic<int> seated = 0;
  int allocated = 0;
  std::atomic<bool> is_stopped = false;

 private:
  const Plan& plan_;
  std::vector<Demand> demands_;
  double scale_;
};

Timeline dispatch(const Plan& plan, Worker& worker) {
  Dispatcher dispatcher(plan, worker);
  dispatcher.to_end();
  return dispatcher.take_timeline();
}

}  // namespace

TEST_CASE("a random plan obeys the laws of order in real time", "[executor][laws]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    toy::Toy toy = random_plan(seed, seed % 2 == 0 ? Features::all : Features::open_loop);
    const Plan plan = toy.finish();
    Sleeper sleeper(plan, toy.demands, 1e-4);
    const Timeline timeline = dispatch(plan, sleeper);
    check_laws(plan, timeline);
  }
}

TEST_CASE("a chain of tasks takes the sum of its times", "[executor]") {
  // 10 ms after 20 ms on another lane, after 30 ms: 60 ms at least, and in this order.
  toy::Toy toy;
  const LaneId first = toy.lane(), second = toy.lane();
  const TaskId a = toy.add(first, toy::wait(0.03));
  const TaskId b = toy.add(second, toy::wait(0.02), {a});
  const TaskId c = toy.add(first, toy::wait(0.01), {b});
  const Plan plan = toy.finish();
  Sleeper sleeper(plan, toy.demands, 1);
  const Timeline timeline = dispatch(plan, sleeper);
  check_laws(plan, timeline);
  CHECK(timeline.end[index(c)] >= 60'000'000'000);
  CHECK(timeline.start[index(c)] >= timeline.end[index(b)]);
  CHECK(sleeper.seated == 2);
}

TEST_CASE("as many tasks of a lane work at once as it is wide", "[executor]") {
  // Six tasks of 20 ms on a lane of width 3: the fourth starts when one of the first three ends.
  toy::Toy toy;
  const LaneId lane = toy.lane(3);
  for (int i = 0; i < 6; ++i) toy.add(lane, toy::wait(0.02));
  const Plan plan = toy.finish();
  Sleeper sleeper(plan, toy.demands, 1);
  const Timeline timeline = dispatch(plan, sleeper);
  check_laws(plan, timeline);
  CHECK(sleeper.seated == 3);
  CHECK(timeline.start[2] < timeline.end[0]);
  CHECK(timeline.start[3] >= std::min({timeline.end[0], timeline.end[1], timeline.end[2]}));
}

TEST_CASE("a task that hangs on an unfinished one runs or passes by the clock", "[executor]") {
  // The decider starts at 10 ms. One watched task takes 200 ms, the other none.
  for (const double watched_time : {0.2, 0.0}) {
    toy::Toy toy;
    const LaneId slow = toy.lane(), main = toy.lane();
    const ChoiceId choice = toy.builder.choice(Choice::Rule::unfinished);
    const TaskId watched = toy.add(slow, toy::wait(watched_time));
    toy.builder.watch(choice, watched);
    const TaskId before = toy.add(main, toy::wait(0.02));
    toy.add(main, toy::wait(0.01), {before}, {decide(choice)});
    const TaskId hanging = toy.add(main, toy::wait(0.01), {}, {}, 0, When::yes(choice));
    const Plan plan = toy.finish();
    Sleeper sleeper(plan, toy.demands, 1);
    const Timeline timeline = dispatch(plan, sleeper);
    check_laws(plan, timeline);
    CHECK(is_skipped(plan, hanging, timeline) == (watched_time == 0.0));
  }
}

TEST_CASE("what a work throws stops the run and leaves no thread", "[executor][faults]") {
  toy::Toy toy;
  const LaneId a = toy.lane(), b = toy.lane(4);
  for (int i = 0; i < 4; ++i) toy.add(b, toy::wait(30));
  const TaskId first = toy.add(a, toy::wait(0.01));
  const TaskId broken = toy.add(a, toy::wait(0.01), {first});
  const Plan plan = toy.finish();
  Sleeper sleeper(plan, toy.demands, 1);
  sleeper.failing = broken;
  // The four works of half a minute stop as well; the destructor would end the program if a thread
  // were left.
  CHECK_THROWS_WITH(dispatch(plan, sleeper), "it broke");
  CHECK(sleeper.is_stopped);
}

TEST_CASE("a plan that cannot go on is said to be stuck", "[executor]") {
  // Two tasks take a token that nobody gives back, and there is one.
  toy::Toy toy;
  const TokenId token = toy.builder.tokens("slots", 1);
  const LaneId lane = toy.lane();
  toy.add(lane, toy::wait(0.001), {}, {acquire(token)});
  toy.add(lane, toy::wait(0.001), {}, {acquire(token)});
  const Plan plan = toy.finish();
  Sleeper sleeper(plan, toy.demands, 1);
  CHECK_THROWS_WITH(dispatch(plan, sleeper), Containing("slots"));
}
