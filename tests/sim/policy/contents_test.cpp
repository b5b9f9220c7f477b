#include "sim/timeline/contents.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

// Written in host memory by task 0, copied to a buffer on the GPU by task 1, read there by task 2,
// made anew in host memory by task 3. Task 4 frees the buffer.
struct Copied {
  Copied() {
    PlanBuilder builder;
    const LaneId lane = builder.lane("lane", 0, 8);
    host = builder.pool("host", {Tier::host, 0}, 1_GiB);
    gpu = builder.pool("gpu", {Tier::gpu, 0}, 1_GiB);
    const BufferId buffer = builder.buffer(gpu, builder.owner("copy"), 1_MiB);
    const ContentId sum = builder.content({.kind = Content::Kind::sum, .tensor = 0, .count = 4});
    const ContentId next = builder.content({.kind = Content::Kind::slice, .count = 4});
    const auto task = [&](const char* name, std::vector<Effect> effects) {
      return builder.join({.name = name, .lane = lane}, {}, effects);
    };
    const auto access = [&](Access::How how, ContentId content, PoolId pool, BufferId in) {
      return Access{content, in, {}, pool, how};
    };
    using How = Access::How;
    const Access there = access(How::read, sum, host, Access::standing);
    const Access made = access(How::write, sum, host, Access::standing);
    const Access copied = access(How::write, sum, gpu, buffer);
    const Access used = access(How::read, sum, gpu, buffer);
    const Access left = access(How::write, next, gpu, Access::standing);
    const std::vector<std::pair<Deed::Verb, std::vector<Access>>> deeds = {
        {Deed::Verb::initialise, {made}},
        {Deed::Verb::move, {there, copied}},
        {Deed::Verb::move, {used, left}},
        {Deed::Verb::add, {there, made}}};
    const char* names[] = {"make", "copy", "use", "make again", "drop"};
    for (std::size_t i = 0; i < 5; ++i) {
      std::vector<Effect> effects;
      if (i == 1) effects.push_back(allocate(buffer));
      if (i == 4) effects.push_back(free(buffer));
      const TaskId t = task(names[i], effects);
      if (i < 4) builder.mean({.task = t, .verb = deeds[i].first}, deeds[i].second);
    }
    plan = builder.finish(1, 1);
  }

  /// The faults when the five tasks take these times.
  std::vector<std::string> faults(const std::vector<std::pair<Instant, Instant>>& times) const {
    return trace(times).faults;
  }
  ContentTrace trace(const std::vector<std::pair<Instant, Instant>>& times) const {
    Timeline timeline;
    for (const auto& [start, end] : times) {
      timeline.start.push_back(start);
      timeline.end.push_back(end);
    }
    return trace_contents(plan, timeline);
  }

  Plan plan;
  PoolId host{}, gpu{};
};

}  // namespace

TEST_CASE("a copy that is read between its making and its freeing is no fault", "[contents]") {
  const ContentTrace trace = Copied().trace({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}});
  CHECK(trace.faults.empty());
  // What was used is the first sum, and the last sum is another.
  CHECK(trace.values[1] != 0);
  CHECK(trace.values[0] != trace.values[1]);
}

TEST_CASE("reading what is not there yet, or no more, is a fault", "[contents]") {
  const auto early = Copied().faults({{0, 1}, {1, 3}, {2, 4}, {4, 5}, {5, 6}});
  REQUIRE(early.size() == 1);
  CHECK_THAT(early[0], Containing("'use'") && Containing("reads what is not there"));
  const auto late = Copied().faults({{0, 1}, {1, 2}, {3, 4}, {4, 5}, {2, 3}});
  REQUIRE(late.size() == 1);
  CHECK_THAT(late[0], Containing("reads what is not there: sum 0, elements 0 to 4, rank 0"));
}

TEST_CASE("reading a copy of what has been made anew is a fault", "[contents]") {
  const auto faults = Copied().faults({{0, 1}, {1, 2}, {3, 4}, {2, 3}, {4, 5}});
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0], Containing("'use'") && Containing("reads an outdated copy"));
}

TEST_CASE("a buffer that goes while it is read is a fault", "[contents]") {
  const auto faults = Copied().faults({{0, 1}, {1, 2}, {2, 4}, {4, 5}, {2, 3}});
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0], Containing("sees change what it reads"));
}

TEST_CASE("writing into a buffer that is freed meanwhile is a fault", "[contents]") {
  const auto faults = Copied().faults({{0, 1}, {1, 3}, {4, 5}, {5, 6}, {1, 2}});
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0], Containing("'copy'") && Containing("buffer that is gone"));
}
