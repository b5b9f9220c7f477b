// A buffer that a plan frees while a task still reads from it: its bytes stay, its pool is free.
#include <array>
#include <optional>

#include "tests/catch.hpp"
#include "tests/validate/execute/executed.hpp"
#include "tests/validate/train/offloaded_cases.hpp"
#include "validate/engine/dispatcher.hpp"

using namespace tidegate;

namespace {

constexpr Bytes content_bytes(32), room(4096);

// make ─┬─ read (of what lies in the buffer)
//       └─ let go ── more (as much in the same pool)
Plan freed_while_read(Tier tier) {
  PlanBuilder b;
  const LaneId main = b.lane("main", 0), reader = b.lane("reader", 0), other = b.lane("other", 0);
  const PoolId pool = b.pool("pool", {tier, 0}, room);
  const PoolId host = b.pool("host", {Tier::host, 0}, room);
  const OwnerId owner = b.owner("masters");
  const BufferId first = b.buffer(pool, owner, room), second = b.buffer(pool, owner, room);
  const ContentId master =
      b.content({.kind = Content::Kind::master, .rank = 0, .tensor = 0, .first = 0, .count = 8});
  const TaskId make = b.join({"make", main}, {}, std::array{allocate(first)});
  b.mean({make, Deed::Verb::initialise},
         std::array{
             Access{.content = master, .buffer = first, .pool = pool, .how = Access::How::write}});
  const Work work = tier == Tier::storage
                        ? Work(FileIo{.direction = Direction::read, .bytes = content_bytes})
                        : Work(Delay{Seconds(1e-6)});
  const TaskId read = b.add({"read", reader}, work, std::array{make});
  b.mean({read, Deed::Verb::move},
         std::array{Access{.content = master, .buffer = first, .pool = pool},
                    Access{.content = master, .pool = host, .how = Access::How::write}});
  const TaskId let_go = b.join({"let go", other}, std::array{make}, std::array{free(first)});
  const TaskId more = b.join({"more", other}, std::array{let_go}, std::array{allocate(second)});
  b.join({"end", main}, std::array{read, more}, std::array{free(second)});
  b.mean(std::vector<std::uint16_t>{0});
  return b.finish(1, 1);
}

void check_read(Tier tier, bool is_process) {
  INFO((tier == Tier::storage ? "on a drive" : "in memory")
       << (is_process ? ", by a process" : ", by a thread"));
  const meant::Run like =
      meant::run(offloaded::overrides({"0", "resident", "resident", "keep"}, 1, 1, "fp32"));
  const Plan plan = freed_while_read(tier);
  const Rig rig = executed::rig_of(like);
  const train::TrainingOptions options{.seed = 3};
  TrainingWorker worker(plan, rig, like.scenario.workload, like.graph, options,
                        is_process ? Memories::Sharing::shared : Memories::Sharing::own);
  std::optional<RankProcesses> processes;
  if (is_process) processes.emplace(plan, worker);
  executed::Late late(plan, is_process ? static_cast<Worker&>(*processes) : worker, "read");
  Dispatcher dispatcher(plan, late);
  dispatcher.to_end();
  if (is_process) processes->collect();
  CHECK(late.tasks == 1);
  CHECK(worker.moved().read == (tier == Tier::storage ? 4096 : 0));  // the page that it lies in
}

}  // namespace

TEST_CASE(
    "what a task that has started reads stays, though the plan has freed it and its pool is "
    "full again",
    "[execute][processes]") {
  for (const Tier tier : {Tier::host, Tier::storage}) {
    for (const bool is_process : {false, true}) check_read(tier, is_process);
  }
}
