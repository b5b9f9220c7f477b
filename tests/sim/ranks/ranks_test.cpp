#include "sim/ranks/ranks.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "models/base/error.hpp"
#include "sim/search/space.hpp"
#include "sim/search/tune.hpp"
#include "tests/catch.hpp"

/// The same search over threads and over processes; processes are threads with letter boxes here.

using namespace tidegate;

namespace {

const std::string scenario = std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/zero_infinity_70b.yaml";
const std::vector<Override> few_layers = {{"workload.network.layers", "2"}};

struct Post {
  std::mutex guard;
  std::vector<std::deque<Link::Message>> boxes;
};

class LetterBox final : public Link {
 public:
  LetterBox(Post& post, std::size_t rank) : post_(post), rank_(rank) {}
  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return post_.boxes.size(); }
  std::size_t size_here() const override { return size(); }
  void send(std::size_t to, std::string text) override {
    const std::lock_guard hold(post_.guard);
    post_.boxes[to].push_back({rank_, std::move(text)});
  }
  std::optional<Message> receive() override {
    const std::lock_guard hold(post_.guard);
    auto& box = post_.boxes[rank_];
    if (box.empty()) return std::nullopt;
    Message message = std::move(box.front());
    box.pop_front();
    return message;
  }

 private:
  Post& post_;
  std::size_t rank_;
};

using Make = std::function<std::unique_ptr<Evaluator>()>;
std::unique_ptr<Evaluator> read_files() {
  return std::make_unique<Evaluator>(scenario_source(scenario), few_layers);
}

// Does `search` on rank 0 of `size`, with others that serve.
template <class Search>
void over_ranks(std::size_t size, std::size_t threads, const Make& make, Search&& search) {
  Post post;
  post.boxes.resize(size);
  std::vector<std::jthread> others;
  for (std::size_t r = 1; r < size; ++r) {
    others.emplace_back([&post, r, threads, &make] {
      LetterBox link(post, r);
      serve(link, threads, make);
    });
  }
  LetterBox link(post, 0);
  const StopOthers stops(link);
  const auto evaluator = read_files();
  Ranks ranks(link, *evaluator, threads);
  search(ranks, *evaluator);
}

Tuning tuned(Evaluators& evaluators, const Evaluator& evaluator) {
  const Space space = default_space(evaluator.scenario({}), evaluator.values(),
                                    {"optimizer", "activations", "reduce_bucket"});
  TuneOptions options;
  options.most_simulations = 60;
  return tune(evaluators, space, options);
}

void check_same(const Tuning& a, const Tuning& b) {
  REQUIRE(a.all.size() == b.all.size());
  for (std::size_t i = 0; i < a.all.size(); ++i) {
    CHECK(a.all[i].picks == b.all[i].picks);
    CHECK(a.all[i].trial == b.all[i].trial);
    CHECK(a.all[i].screening.bound.needs == b.all[i].screening.bound.needs);
    CHECK(a.all[i].screening.bound.time == b.all[i].screening.bound.time);
    CHECK(a.all[i].screening.bound.limited_by == b.all[i].screening.bound.limited_by);
  }
  CHECK(a.best->picks == b.best->picks);
  CHECK(a.counts.screened == b.counts.screened);
  CHECK(a.counts.open == b.counts.open);
  CHECK(a.refusals == b.refusals);
  CHECK(a.bound == b.bound);
}

}  // namespace

TEST_CASE("a search over several processes has the answer of one", "[ranks]") {
  const auto evaluator = read_files();
  Threads one(*evaluator, 1);
  const Tuning expected = tuned(one, *evaluator);
  REQUIRE(expected.best);
  REQUIRE(expected.counts.simulated > 20);
  for (const std::size_t size : {1U, 2U, 4U}) {
    for (const std::size_t threads : {1U, 2U}) {
      INFO(size << " processes with " << threads << " threads");
      over_ranks(size, threads, read_files, [&](Ranks& ranks, const Evaluator& own) {
        check_same(tuned(ranks, own), expected);
      });
    }
  }
}

TEST_CASE("what goes wrong elsewhere is thrown here", "[ranks]") {
  SECTION("a file that one process cannot read") {
    const Make fails = []() -> std::unique_ptr<Evaluator> {
      throw InputError({"there.yaml", 3, 7}, "ranks", "is missing");
    };
    const auto search = [&] { over_ranks(3, 1, fails, [](Ranks&, const Evaluator&) {}); };
    CHECK_THROWS_WITH(search(), Containing("there.yaml:3:7: ranks: is missing"));
    CHECK_THROWS_AS(search(), InputError);
  }
  SECTION("another scenario under the same name") {
    const Make other = [] {
      return std::make_unique<Evaluator>(scenario_source(scenario),
                                         std::vector<Override>{{"workload.network.layers", "3"}});
    };
    const auto search = [&] { over_ranks(2, 1, other, [](Ranks&, const Evaluator&) {}); };
    CHECK_THROWS_WITH(search(), Containing("process 1 has read another scenario"));
  }
  SECTION("a candidate that is refused: the first of all") {
    const auto search = [&] {
      over_ranks(3, 1, read_files, [&](Ranks& ranks, const Evaluator&) {
        std::vector<Evaluators::Sets> list(12);
        list[5] = {{"policy.optimizer.no_such_key", "1"}};
        list[9] = {{"ranks", "-1"}};
        std::size_t done = 0;
        try {
          ranks.simulate(list, [&](std::size_t, Trial) { ++done; }, [] { return false; });
        } catch (...) {
          CHECK(done == 10);
          throw;
        }
      });
    };
    CHECK_THROWS_WITH(search(), Containing("no_such_key"));
    CHECK_THROWS_AS(search(), InputError);
  }
}

TEST_CASE("an interrupted search over processes begins nothing else", "[ranks]") {
  over_ranks(3, 1, read_files, [&](Ranks& ranks, const Evaluator&) {
    std::size_t done = 0;
    ranks.simulate(
        std::vector<Evaluators::Sets>(1000), [&](std::size_t, Trial) { ++done; },
        [&] { return done >= 5; });
    CHECK(done >= 5);
    CHECK(done < 50);
    // The answers that were too late are not taken for those of what comes next.
    std::vector<int> seen(20);
    ranks.simulate(
        std::vector<Evaluators::Sets>(20), [&](std::size_t i, Trial) { ++seen[i]; },
        [] { return false; });
    CHECK(std::ranges::all_of(seen, [](int n) { return n == 1; }));
  });
}

TEST_CASE("a question and its answer are read back as they were", "[ranks]") {
  const auto evaluator = read_files();
  const std::vector<Override> sets = {{"policy.optimizer.buffer_count", "8"}};
  const Question asked{.kind = Question::Kind::simulate, .batch = 7, .items = {{3, sets}}};
  const Question question = decode_question(encode(asked));
  CHECK(question.kind == Question::Kind::simulate);
  CHECK(question.batch == 7);
  REQUIRE(question.items.size() == 1);
  CHECK(question.items[0].number == 3);
  CHECK(question.items[0].sets == sets);
  const Trial trial = evaluator->simulate(sets);
  const Answer answer = answer_to(*evaluator, question.kind, question.items[0], question.batch);
  const auto back = decode_answers(encode(std::vector<Answer>{answer}));
  REQUIRE(back.size() == 1);
  CHECK(back[0].number == 3);
  CHECK(back[0].trial == trial);
  CHECK_THROWS(decode_answers("[{]"));
}
