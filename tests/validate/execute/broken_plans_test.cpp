// What is wrong with a plan, a file or a process is seen: the equality of executed training is a
// test that can fail.
#include <cerrno>
#include <string>

#include <sys/wait.h>

#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/validate/execute/executed.hpp"
#include "tests/validate/train/offloaded_cases.hpp"

using namespace tidegate;
using namespace tidegate::offloaded;

namespace {

const Case states_on_drives = {
    "3", "resident", "{name: zero_infinity, path: nvme, sub_group_size: 500, buffer_count: 4}",
    "keep"};

meant::Run short_run(const Case& c, int ranks) {
  auto changes = overrides(c, ranks, 1, "bf16");
  changes.emplace_back("iterations", "4");
  return meant::run(changes);
}

TrainingRun executed_run(const meant::Run& run, const std::vector<FileFault>& faults = {},
                         const RankOptions& ranks = {}) {
  Rig rig = executed::rig_of(run);
  rig.faults = faults;
  return train_on(rig, run.plan, run.scenario.workload, run.graph, executed::options_of(run),
                  ranks);
}

bool is_same(const TrainingRun& real, const meant::Run& run) {
  const train::Training alone = train::train(run.scenario.workload, executed::options_of(run));
  return real.training.losses == alone.losses && real.training.state == alone.state;
}

// Two contents of one kind, rank and size.
std::pair<ContentId, ContentId> alike(const Plan& plan, Content::Kind kind) {
  const auto& all = plan.meaning.contents;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      const bool is_alike = all[i].kind == kind && all[j].kind == kind &&
                            all[i].rank == all[j].rank && all[i].count == all[j].count &&
                            all[i].count > 1 && all[i].tensor != all[j].tensor;
      if (is_alike) return {static_cast<ContentId>(i), static_cast<ContentId>(j)};
    }
  }
  FAIL("the network has two tensors of one size");
  return {};
}

// Exchanges the two contents in the accesses of iteration 1 that are asked for, one of each.
template <class IsIt>
void swap_contents(Plan& plan, std::pair<ContentId, ContentId> two, IsIt&& is_it) {
  int swapped = 0;
  for (const Deed& deed : plan.meaning.deeds) {
    if (plan.task(deed.task).iteration != 1) continue;
    for (std::uint32_t i = 0; i < deed.access_count; ++i) {
      Access& a = plan.meaning.accesses[deed.first_access + i];
      const bool is_one = a.content == two.first || a.content == two.second;
      if (!is_one || !is_it(deed, a)) continue;
      a.content = a.content == two.first ? two.second : two.first;
      ++swapped;
    }
  }
  REQUIRE(swapped == 2);
}

}  // namespace

TEST_CASE("a deed that takes its gradient from another tensor trains another network",
          "[execute][faults]") {
  meant::Run run = short_run({"0", "resident", "resident", "keep"}, 1);
  CHECK(is_same(executed_run(run), run));
  swap_contents(run.plan, alike(run.plan, Content::Kind::sum),
                [](const Deed& deed, const Access& a) {
                  return deed.verb == Deed::Verb::adam && a.how == Access::How::read;
                });
  CHECK_FALSE(is_same(executed_run(run), run));
}

TEST_CASE("two contents of a file that have changed places train another network",
          "[execute][faults]") {
  meant::Run run = short_run(states_on_drives, 1);
  CHECK(is_same(executed_run(run), run));
  swap_contents(run.plan, alike(run.plan, Content::Kind::master),
                [&](const Deed&, const Access& a) {
                  return a.how == Access::How::write &&
                         run.plan.pools[index(a.pool)].place.tier == Tier::storage;
                });
  CHECK_FALSE(is_same(executed_run(run), run));
}

TEST_CASE("a bit of a file that is wrong stops the training and says where", "[execute][faults]") {
  const meant::Run run = short_run(states_on_drives, 1);
  CHECK_THROWS_WITH(
      executed_run(run, {{0, Direction::read, {.at = 1, .kind = rig::IoFault::Kind::corrupt}}}),
      Containing("task 'read sub-group") && Containing("offset") &&
          Containing("not those that were written"));
  CHECK_THROWS_WITH(
      executed_run(
          run,
          {{0, Direction::write, {.at = 2, .kind = rig::IoFault::Kind::error, .error = ENOSPC}}}),
      Containing("No space left on device"));
}

TEST_CASE("a process that dies is named with what it was doing, and none is left",
          "[execute][faults][processes]") {
  const meant::Run run = short_run(states_on_drives, 2);
  CHECK_THROWS_WITH(
      executed_run(run, {}, {.are_processes = true, .deaths = {{.rank = 1, .at = 20}}}),
      Containing("the process of rank 1") && Containing("killed by signal 9") &&
          Containing("while under way: '") && Containing("of iteration"));
  CHECK((waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
}

TEST_CASE("what fails in the process of a rank fails as in a thread", "[execute][processes]") {
  const meant::Run run = short_run(states_on_drives, 2);
  CHECK_THROWS_AS(
      executed_run(run, {{0, Direction::read, {.at = 1, .kind = rig::IoFault::Kind::corrupt}}},
                   {.are_processes = true}),
      MachineError);
  CHECK((waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD));
}
