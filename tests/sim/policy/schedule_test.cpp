#include "sim/policy/schedule.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

// "F0 B0": micro-batches; "F0.1": of chunk 1, where there are several.
std::string text_of(const std::vector<Action>& actions, bool has_chunks = false) {
  std::string text;
  for (const Action& a : actions) {
    text += (text.empty() ? "" : " ") + std::string(a.is_forward ? "F" : "B") +
            std::to_string(a.micro_batch);
    if (has_chunks) text += "." + std::to_string(a.chunk);
  }
  return text;
}

std::int64_t warm_up(const std::vector<Action>& actions) {
  return std::ranges::find(actions, false, &Action::is_forward) - actions.begin();
}

// Most forwards whose backward has not run.
std::int64_t most_in_flight(const std::vector<Action>& actions) {
  std::int64_t now = 0, most = 0;
  for (const Action& a : actions) most = std::max(most, now += a.is_forward ? 1 : -1);
  return most;
}

}  // namespace

TEST_CASE("1F1B of four stages and eight micro-batches", "[schedule]") {
  // The first stage runs 4 - 1 forwards ahead, the last none.
  CHECK(text_of(stage_schedule(0, 4, 1, 8)) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7");
  CHECK(text_of(stage_schedule(3, 4, 1, 8)) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7");
  for (std::int64_t s = 0; s < 4; ++s) {
    // p - 1 - s forwards fill the pipeline; one more is the first of a pair.
    CHECK(warm_up(stage_schedule(s, 4, 1, 8)) == 4 - s);
    CHECK(most_in_flight(stage_schedule(s, 4, 1, 8)) == 4 - s);
  }
}

TEST_CASE("with fewer micro-batches than stages all forwards come first", "[schedule]") {
  CHECK(text_of(stage_schedule(0, 4, 1, 2)) == "F0 F1 B0 B1");
  CHECK(text_of(stage_schedule(2, 4, 1, 2)) == "F0 F1 B0 B1");
  CHECK(text_of(stage_schedule(3, 4, 1, 2)) == "F0 B0 F1 B1");
}

TEST_CASE("interleaved, two stages of two chunks and four micro-batches", "[schedule]") {
  // Forwards in groups of p = 2: 0.0 1.0 0.1 1.1, 2.0 3.0 2.1 3.1; backwards with the chunks the
  // other way round. Stage 0 runs 2 (2 - 1) + (2 - 1) 2 = 4 ahead, stage 1 runs 2.
  CHECK(text_of(stage_schedule(0, 2, 2, 4), true) ==
        "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  CHECK(text_of(stage_schedule(1, 2, 2, 4), true) ==
        "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

TEST_CASE("interleaved, eight stages of three chunks and 64 micro-batches", "[schedule]") {
  constexpr std::int64_t p = 8, c = 3, m = 64;
  for (std::int64_t s = 0; s < p; ++s) {
    const auto actions = stage_schedule(s, p, c, m);
    INFO("stage " << s);
    // Megatron-LM: 2 (p - 1 - s) + (c - 1) p forwards of warm-up, then one more before the first
    // backward: as many chunks are in flight at most.
    const std::int64_t ahead = 2 * (p - 1 - s) + (c - 1) * p + 1;
    CHECK(warm_up(actions) == ahead);
    CHECK(most_in_flight(actions) == ahead);
    std::set<std::tuple<int, int, bool>> seen;
    for (const Action& a : actions) {
      CHECK(a.stage == s);
      if (!a.is_forward) CHECK(seen.contains({a.chunk, a.micro_batch, true}));
      CHECK(seen.insert({a.chunk, a.micro_batch, a.is_forward}).second);
    }
    CHECK(seen.size() == static_cast<std::size_t>(2 * c * m));
  }
}

TEST_CASE("a pipeline's order has everything after what it waits for", "[schedule]") {
  for (const std::int64_t p : {1, 2, 3, 4, 8}) {
    for (const std::int64_t c : {1, 2, 3}) {
      for (const std::int64_t groups : {1, 2, 5}) {
        if (p == 1 && c > 1) continue;
        // Any number of micro-batches without interleaving: one more than a multiple, too.
        const std::int64_t m = p * groups + (c == 1 ? 1 : 0), pieces = p * c;
        INFO("p " << p << " c " << c << " m " << m);
        std::set<std::tuple<std::int64_t, int, bool>> done;
        std::vector<std::vector<Action>> by_stage(static_cast<std::size_t>(p));
        bool is_ordered = true;
        for (const Action& a : pipeline_schedule(p, c, m)) {
          const std::int64_t piece = a.piece(p);
          if (a.is_forward) {
            is_ordered &= piece == 0 || done.contains({piece - 1, a.micro_batch, true});
          } else {
            is_ordered &= done.contains({piece, a.micro_batch, true});
            is_ordered &= piece + 1 == pieces || done.contains({piece + 1, a.micro_batch, false});
          }
          is_ordered &= done.insert({piece, a.micro_batch, a.is_forward}).second;
          by_stage[a.stage].push_back(a);
        }
        CHECK(is_ordered);
        CHECK(done.size() == static_cast<std::size_t>(2 * pieces * m));
        for (std::int64_t s = 0; s < p; ++s) {
          CHECK(by_stage[static_cast<std::size_t>(s)] == stage_schedule(s, p, c, m));
        }
      }
    }
  }
}

TEST_CASE("an interleaved pipeline takes whole groups of micro-batches", "[schedule]") {
  CHECK_THROWS_AS(pipeline_schedule(4, 2, 6), std::logic_error);
  CHECK_THROWS_AS(pipeline_schedule(1, 2, 4), std::logic_error);
}
