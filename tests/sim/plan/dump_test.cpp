#include "models/base/error.hpp"
#include "sim/plan/plan.hpp"

#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

Plan example() {
  PlanBuilder builder;
  const LaneId reads = builder.lane("reads of # 0", 1, 4), gpu = builder.lane("gpu0 compute", 0);
  const PoolId host = builder.pool("host memory", {Tier::host, 1}, 64_GiB);
  const PoolId odd = builder.pool("", {Tier::gpu, 3}, Bytes(0.1));
  const OwnerId owner = builder.owner("optimizer state");
  const BufferId a = builder.buffer(host, owner, 3_GB),
                 b = builder.buffer(odd, builder.owner("x"), Bytes(1));
  const TokenId slots = builder.tokens("slots", 2);
  const LockId drive = builder.lock("nvme 0");
  const ChoiceId late = builder.choice(Choice::Rule::unfinished);
  const ChoiceId idle = builder.choice(Choice::Rule::unstarted);
  builder.enter(0, Phase::forward);
  const Effect starts[] = {allocate(a), acquire(slots, 2), hold(drive)};
  const TaskId read =
      builder.add({"read sub-group", reads, 1, 7}, FileIo{.path = 2, .bytes = 3_GB}, {}, starts);
  builder.mark(read, 1);
  builder.enter(1, Phase::update);
  const Effect decisions[] = {decide(late), decide(idle)};
  const TaskId wait = builder.add({"wait", gpu}, Delay{Seconds(0.1)}, {}, decisions);
  builder.watch(late, read), builder.watch(idle, read);
  const TaskId both[] = {read, wait};
  const Effect ends[] = {allocate(b), tidegate::free(a, When::no(late)), tidegate::free(b),
                         release(slots, 2, When::yes(idle))};
  builder.mark(builder.join({.name = "done", .lane = gpu, .when = When::no(idle)}, both, ends), 0);
  return builder.finish(2, 2);
}

std::string problem_of(const std::string& text) {
  try {
    read_plan(text, "plan.txt");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

const std::string small =
    "tidegate-plan 1\n"
    "lane 0 1 gpu\n"
    "name a\n"
    "work delay 1\n";
const std::string task = "name 0 item -1 work 0 lane 0 rank 0 iteration 0 phase other";

}  // namespace

TEST_CASE("a plan's text reads back to the same plan", "[dump]") {
  const Plan plan = example();
  const std::string text = dump(plan);
  const Plan back = read_plan(text, "plan.txt");
  CHECK(dump(back) == text);
  CHECK(back.works == plan.works);
  CHECK(back.after_list == plan.after_list);
  CHECK(back.effect_list == plan.effect_list);
  CHECK(back.owners == plan.owners);
  CHECK(back.names == plan.names);
  CHECK(back.iterations == 2);
  CHECK(back.ranks == 2);
  REQUIRE(back.pools.size() == 2);
  CHECK(back.pools[1].name.empty());
  CHECK(back.pools[1].capacity == Bytes(0.1));
  CHECK(back.pools[1].place == Place{Tier::gpu, 3});
  CHECK(back.lanes[0].name == "reads of # 0");
  CHECK(back.lanes[0].width == 4);
  CHECK(back.label(TaskId{0}) == "read sub-group 7");
  CHECK(back.marks.size() == 2);
  REQUIRE(back.choices.size() == 2);
  CHECK(back.choices[1].watched == TaskId{0});
  CHECK(back.choices[0].rule == Choice::Rule::unfinished);
  CHECK(back.choices[1].rule == Choice::Rule::unstarted);
  CHECK(back.tasks[2].when == When::no(ChoiceId{1}));
  CHECK(back.tasks[1].when == When{});
}

TEST_CASE("a task line says what the task is, and who it is in a comment", "[dump]") {
  CHECK_THAT(dump(example()),
             Containing("choice unfinished 0\nchoice unstarted 0\n") &&
                 Containing("task 2 name 2 item -1 work 2 lane 1 rank 0 iteration 1 phase update "
                            "when no:1 after 0 1 does allocate:1 free:0?no:0 free:1 "
                            "release:0*2?yes:1 # done\n"));
}

TEST_CASE("a faulty plan text is refused with its place", "[dump]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"", "plan.txt:1:1: a plan begins with 'tidegate-plan 1'"},
      {"tidegate-plan 2\n", "plan.txt:1:1: a plan begins with"},
      {small + "fly 1\n", "plan.txt:5:1: 'fly' is not a kind of line"},
      {small + "lock\nlane 0 0 x\n", "plan.txt:6:8: 0 is not a width"},
      {small + "lane x 1 x\n", "plan.txt:5:6: 'x' is not a rank"},
      {small + "lane 70000 1 x\n", "plan.txt:5:6: '70000' is not a rank"},
      {small + "tokens\n", "plan.txt:5:7: the line ends; expected a count"},
      {small + "work fly\n", "unknown work 'fly'"},
      {small + "pool attic 0 1 x\n",
       "plan.txt:5:6: 'attic' is not a tier; one of: gpu, host, storage"},
      {small + "pool gpu 0 nan x\n", "plan.txt:5:12: nan is not a capacity"},
      {small + "buffer 1 0 0\n", "plan.txt:5:10: there is no pool 0; 0 are named above"},
      {small + "task 1 " + task + "\n", "plan.txt:5:6: task 0 belongs here"},
      {small + "task 0 item 0\n", "plan.txt:5:8: 'item' where 'name' belongs"},
      {small + "task 0 " + task + " soon\n", "'soon' where 'when', 'after' or 'does' belongs"},
      {small + "task 0 " + task + " after 0 when no:0\n", "'when' is not task"},
      {small + "task 0 " + task + " when\n", "the line ends; expected a condition"},
      {small + "task 0 " + task + " when no\n", "'no' is not a condition like no:3"},
      {small + "task 0 " + task + " when no:0\n", "there is no choice 0; 0 are named above"},
      {small + "choice late 0\n", "'late' is not a rule; one of: unfinished, unstarted"},
      {small + "choice unfinished 0\n", "plan.txt:5:1: there is no task 0 to watch"},
      {small + "choice unstarted 0\ntask 0 " + task + " does decide:0?maybe:0\n",
       "'maybe' is not an outcome; one of: no, yes"},
      {small + "task 0 " + task + " after 3\n", "plan.txt:5:1: there is no task 3 to come after"},
      {small + "task 0 " + task + " does free\n", "'free' is not an effect like free:3"},
      {small + "task 0 " + task + " does free:0\n", "there is no buffer 0"},
      {small + "task 0 " + task + " does burn:0\n",
       "'burn' is not an effect; one of: allocate, free"},
      {small + "ranks 2 3\n", "plan.txt:5:9: more words than the line needs"},
      {small + "mark 0 iteration 0 rank 0 phase other\n", "there is no task 0"},
  }));
  INFO(text);
  CHECK_THAT(problem_of(text), Containing(expected));
}

TEST_CASE("comments and empty lines in a plan text mean nothing", "[dump]") {
  const Plan plan = read_plan(small + "\n# a task\n  \ntask 0 " + task + " # a\n", "plan.txt");
  CHECK(plan.size() == 1);
}
