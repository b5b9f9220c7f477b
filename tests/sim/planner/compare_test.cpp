#include "sim/planner/compare.hpp"

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sim/planner/words.hpp"
#include "sim/run/predict.hpp"
#include "tests/catch.hpp"
#include "tests/sim/planner/small.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;
using namespace tidegate::planner;
using nlohmann::json;
using test::TemporaryFolder;

namespace {

constexpr double day = 86400;

// A decoder that fits anywhere: 2 · 2 sequences of 128 tokens, 512 tokens an iteration.
const std::string scenario_text =
    "workload: {network: {layers: 2, hidden: 512, heads: 8, vocabulary: 1000}, sequence: 128, "
    "micro_batch: 2, accumulation: 2}\n";
const std::string own_machine = "hardware: workstation_rtx4090\npolicy: {}\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

CompareOptions few(std::size_t threads = 1) {
  CompareOptions options;
  options.assess.simulations = 4;
  options.assess.threads = threads;
  return options;
}

// Machines that train a million tokens: days, and the money that it costs in energy, so that costs
// are what is said.
Assessment machine(double days, Money cost, Money purchase = 0) {
  Assessment a;
  a.state = Assessment::State::trained;
  a.time = Seconds(days * day);
  a.iteration_time = Seconds(days * day / 1000);
  a.tokens_per_second = 1e6 / (days * day);
  a.costs.energy = cost;
  a.costs.purchase = purchase;
  a.bill.items = {{.name = "all", .count = 1, .price = purchase}};
  return a;
}

Comparison of(std::vector<Assessment> machines) {
  Comparison c{.currency = "EUR", .tokens = 1e6, .tokens_per_iteration = 1000, .margin = 0.01};
  c.machines = std::move(machines);
  return c;
}

std::string text_of(const Comparison& c) { return to_text(c, "s.yaml", 100); }

}  // namespace

TEST_CASE("the answer is the cheapest; with days the cheapest that keeps them", "[plan]") {
  Comparison c = of({machine(10, 100), machine(5, 200), machine(7, 150), machine(8, 160)});
  rank(c);
  CHECK(c.answer == 0U);
  CHECK(c.front == std::vector<std::size_t>{1, 2, 0});
  c.days = 9;
  rank(c);
  CHECK(c.answer == 2U);
  c.days = 4;
  rank(c);
  CHECK(!c.answer);
  CHECK_THAT(text_of(c), Containing("None of these machines trains this within 4 days"));
}

TEST_CASE("a budget is about what is paid, purchase included; alone it asks for the fastest",
          "[plan]") {
  Comparison c = of({machine(10, 100, 1000), machine(5, 200, 3000), machine(7, 150, 1500)});
  c.budget = 1700;  // 1000 + 100 and 1500 + 150 keep it, 3000 + 200 does not
  rank(c);
  CHECK(c.answer == 2U);
  CHECK_THAT(text_of(c), Containing("Fastest for at most 1700 EUR"));
  c.days = 20;
  rank(c);
  CHECK(c.answer == 0U);
  c.days.reset();
  c.budget = 1000;
  rank(c);
  CHECK(!c.answer);
}

TEST_CASE("machines within the margin, or whose intervals meet, are not told apart", "[plan]") {
  Comparison c = of({machine(10, 100), machine(9, 100.9), machine(8, 102)});
  rank(c);
  CHECK(c.alike == std::vector<std::size_t>{1});
  // Nine in ten within 0.98 to 1.02 of the time, so that 100 reaches to 102 and 102 down to 99.96.
  for (Assessment& a : c.machines) {
    a.range = Report::Range{.low = a.iteration_time * 0.98,
                            .high = a.iteration_time * 1.02,
                            .draws = 8,
                            .uncertain = 1};
  }
  rank(c);
  CHECK(c.alike == std::vector<std::size_t>{1, 2});
  CHECK_THAT(text_of(c), Containing("Not told apart from the cheapest by the intervals"));
}

TEST_CASE("a step is the gain of one more of something over its price", "[plan]") {
  // 1e6 tokens in 10 and in 5 days are 1.1574 and 2.3148 tokens/s: 1.1574 for 2000, 0.5787 for
  // 1000. The third machine is two steps away from the first, the fourth of another grid.
  Comparison c =
      of({machine(10, 1, 1000), machine(5, 1, 3000), machine(4, 1, 4000), machine(3, 1, 5000)});
  for (std::size_t i = 0; i < 3; ++i) {
    c.machines[i].build.at = {0, 0, i, 0};
    c.machines[i].build.drives = static_cast<std::int64_t>(i) + 1;
  }
  c.machines[3].build.entry = 1;
  rank(c);
  REQUIRE(c.upgrades.size() == 2);
  CHECK(c.upgrades[0].what == "1 -> 2 drives a node");
  CHECK(c.upgrades[0].gain == Approx(1.1574).epsilon(1e-4));
  CHECK(c.upgrades[0].price == 2000);
  CHECK(*c.upgrades[0].per_thousand == Approx(0.5787).epsilon(1e-4));
  CHECK(c.upgrades[0].days == Approx(5));
  // 1e6 / (4 days) - 1e6 / (5 days) = 0.5787 tokens/s for 1000.
  CHECK(*c.upgrades[1].per_thousand == Approx(0.5787).epsilon(1e-4));
}

TEST_CASE("days are iterations times their length, and the prediction is simulate's", "[plan]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", scenario_text + own_machine);
  const Catalog catalog = read_catalog(folder.write("c.yaml", test::small_catalog()));
  const Job job = job_of(scenario_source(path), {}, 5.12e6);
  CHECK(job.sequences == 4);
  CHECK(job.tokens_per_iteration() == 512);
  const Comparison c = compare_machines(catalog, job, few());
  REQUIRE(c.machines.size() == 2);
  REQUIRE(c.answer == 0U);  // one drive: no more are needed
  const Assessment& a = c.machines[0];
  REQUIRE(a.is_trained());
  // 5.12e6 / 512 = 10000 iterations.
  CHECK(a.days() == Approx(1e4 * a.iteration_time.value() / day));
  CHECK(a.costs.capital == Approx((1000 + 64 * 5 + 2000 + 150) * a.days() / (4 * 365.25)));
  Scenario scenario = load_scenario(path, a.sets);
  CHECK(predict(scenario).report.tokens_per_second == Approx(a.tokens_per_second).epsilon(1e-3));
}

TEST_CASE("the comparison is the same for any number of threads", "[plan]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", scenario_text + own_machine);
  const Catalog catalog = read_catalog(folder.write("c.yaml", test::small_catalog()));
  const Job job = job_of(scenario_source(path), {}, 1e9);
  CHECK(to_json(compare_machines(catalog, job, few(1))) ==
        to_json(compare_machines(catalog, job, few(2))));
}

TEST_CASE("what cannot be built or does not fit stays in the answer with its reason", "[plan]") {
  // 7 GiB are less than what system and process take, 6 and 2 GiB; 9 drives have no slots.
  const TemporaryFolder folder;
  std::string text = replaced(test::small_catalog(), "drives: [1, 2], memory: 64 GiB",
                              "drives: [1, 9], memory: [7 GiB, 64 GiB]");
  const Catalog catalog = read_catalog(folder.write("c.yaml", text));
  const Job job =
      job_of(scenario_source(folder.write("s.yaml", scenario_text + own_machine)), {}, 1e9);
  const Comparison c = compare_machines(catalog, job, few());
  REQUIRE(c.machines.size() == 4);
  CHECK(c.machines[0].state == Assessment::State::does_not_fit);
  CHECK_THAT(c.machines[0].reason, Containing("host needs"));
  CHECK(c.machines[1].is_trained());
  CHECK(c.machines[2].state == Assessment::State::refused);
  for (const auto& all : {text_of(c), to_csv(c), page::to_html(comparison_page(c, "s.yaml"))}) {
    for (const Assessment& a : c.machines) CHECK_THAT(all, Containing(a.build.name));
    CHECK_THAT(all, Containing("has 4 slots"));
  }
}

TEST_CASE("a machine whose bound is behind is not simulated, unless all are", "[plan]") {
  // The same desk with a drive of a million: as fast, and far dearer whatever its policy.
  const TemporaryFolder folder;
  std::string text = replaced(test::small_catalog(), "drives: [1, 2]", "drives: 1");
  text = replaced(text, "  stick:",
                  "  gold:\n    component: 990_pro_2tb\n    lanes: 4\n"
                  "    price: {value: 1000000, assumed: a}\n"
                  "    idle: {value: 1 W, assumed: a}\n"
                  "    busy: {value: 8 W, assumed: a}\n  stick:");
  text += "  - {host: desk, gpu: card, gpus: 1, drive: gold, drives: 1, memory: 64 GiB}\n";
  const Catalog catalog = read_catalog(folder.write("c.yaml", text));
  const Job job =
      job_of(scenario_source(folder.write("s.yaml", scenario_text + own_machine)), {}, 1e9);
  CompareOptions options = few();
  // The bound is below the best time; what the dear machine may cost then decides nothing, so that
  // it is simulated, and is behind.
  const Comparison c = compare_machines(catalog, job, options);
  CHECK(c.answer == 0U);
  CHECK(c.front == std::vector<std::size_t>{0});
  options.budget = 10000;
  const Comparison bounded = compare_machines(catalog, job, options);
  CHECK(bounded.machines[1].state == Assessment::State::over_budget);
}

TEST_CASE("assess leaves a machine alone when no policy can be fast enough", "[plan]") {
  const TemporaryFolder folder;
  const Catalog catalog = read_catalog(folder.write("c.yaml", test::small_catalog()));
  const Job job =
      job_of(scenario_source(folder.write("s.yaml", scenario_text + own_machine)), {}, 1e9);
  AssessOptions options = few().assess;
  const Build build = builds_of(catalog).front();
  const Assessment known = assess(catalog, build, job, options);
  REQUIRE(known.is_trained());
  options.enough = known.iteration_time * 1e-3;
  const Assessment left = assess(catalog, build, job, options);
  CHECK(left.state == Assessment::State::cannot_win);
  CHECK(left.simulated == 0);
  // What is said of it is a bound on what is known.
  CHECK(left.most_tokens_per_second >= known.tokens_per_second);
}

TEST_CASE("a workload alone needs its batch, and a policy that is not there a start", "[plan]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", scenario_text);
  CHECK_THROWS_WITH(job_of(scenario_source(path), {}, 1e9), Containing("add --batch"));
  const Job job = job_of(scenario_source(path), {}, 1e9, 8);
  CHECK(job.sequences == 8);
  CHECK(job.tokens_per_iteration() == 1024);
  const Catalog catalog = read_catalog(folder.write("c.yaml", test::small_catalog()));
  const Comparison c = compare_machines(catalog, job, few());
  REQUIRE(c.machines[0].is_trained());
  CHECK_THAT(c.machines[0].note, Containing("the scenario has none"));
}

TEST_CASE("a batch that GPUs cannot share is said, not rounded", "[plan]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", scenario_text + own_machine);
  const Catalog catalog =
      read_catalog(std::string(TIDEGATE_SOURCE_DIR) + "/catalogs/example_2026.yaml");
  Build build = builds_of(catalog).front();
  build.gpus = 3;  // one rank of three GPUs does not exist, nor do three thirds of four sequences
  const Assessment a = assess(catalog, build, job_of(scenario_source(path), {}, 1e9), few().assess);
  CHECK(a.state == Assessment::State::refused);
  CHECK_THAT(a.reason, Containing("a batch of 4 sequences does not divide over 3 GPUs"));
}

TEST_CASE("machines come from the catalog alone", "[plan]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", scenario_text + own_machine);
  CHECK_THROWS_WITH(job_of(scenario_source(path), {{"machine.gpus.count", "2"}}, 1e9),
                    Containing("machines come from the catalog"));
}

TEST_CASE("JSON is finite and has what docs/plan_json.md names", "[plan]") {
  const TemporaryFolder folder;
  const Catalog catalog = read_catalog(folder.write("c.yaml", test::small_catalog()));
  const Job job =
      job_of(scenario_source(folder.write("s.yaml", scenario_text + own_machine)), {}, 1e9);
  const json result = json::parse(to_json(compare_machines(catalog, job, few())));
  CHECK(result.at("schema") == "tidegate.plan/1");
  const std::string docs = [] {
    std::ifstream file(std::string(TIDEGATE_SOURCE_DIR) + "/docs/plan_json.md");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }();
  const auto check = [&](const json& object) {
    for (const auto& [key, value] : object.items()) {
      INFO(key);
      CHECK(docs.find("`" + key + "`") != std::string::npos);
    }
  };
  check(result);
  check(result.at("machines").at(0));
  check(result.at("machines").at(0).at("costs"));
  check(result.at("machines").at(0).at("busy"));
  check(result.at("upgrades").at(0));
  check(result.at("sources").at(0));
}

TEST_CASE("a machine is at least as fast as with the policy of another that fits it", "[plan]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", scenario_text + own_machine);
  const Catalog catalog = read_catalog(folder.write("c.yaml", test::small_catalog()));
  const Job job = job_of(scenario_source(path), {}, 1e9);
  const std::vector<Build> builds = builds_of(catalog);
  const Assessment first = assess(catalog, builds.at(0), job, few().assess);
  REQUIRE(first.is_trained());
  const std::vector<Override> policy = policy_of(first.sets);

  AssessOptions options = few().assess;
  options.simulations = 1;
  options.known = {policy};
  const Assessment second = assess(catalog, builds.at(1), job, options);
  REQUIRE(second.is_trained());
  const Trial with_it = start_of(catalog, builds.at(1), job).evaluator->simulate(policy);
  REQUIRE(with_it.fits);
  CHECK(second.iteration_time <= with_it.iteration_time);
}

TEST_CASE("a policy of another machine that would change the batch is not taken", "[plan]") {
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", scenario_text + own_machine);
  const Catalog catalog = read_catalog(folder.write("c.yaml", test::small_catalog()));
  const Job job = job_of(scenario_source(path), {}, 1e9);
  Start start = start_of(catalog, builds_of(catalog).at(0), job);
  // Half of the sequences would take half of the time.
  const std::vector<Override> before = start.sets;
  start = better_start(std::move(start), job, {{{"workload.accumulation", "1"}}});
  CHECK(start.sets == before);
}

TEST_CASE("where all of it fits on the GPU, no search is too short to find that", "[plan]") {
  // Without a policy the search begins with the states in files: 4 million parameters, which take
  // 64 MB of the card's 24 GB.
  const TemporaryFolder folder;
  const Job job = job_of(scenario_source(folder.write("s.yaml", scenario_text)), {}, 1e9, 4);
  const Catalog catalog = read_catalog(folder.write("c.yaml", test::small_catalog()));
  const Build build = builds_of(catalog).front();
  AssessOptions options = few().assess;
  options.simulations = 1;
  const Assessment a = assess(catalog, build, job, options);
  REQUIRE(a.is_trained());
  CHECK_THAT(a.policy, Containing("optimizer on the GPU"));
  CHECK(!a.usage.drive_life_years);
  CHECK(a.iteration_time < start_of(catalog, build, job).evaluator->simulate({}).iteration_time);
}

TEST_CASE("where nothing fits but what is offloaded, the search begins there", "[plan]") {
  // 12 blocks of width 4096, 12 · 12 · 4096² = 2.4e9 parameters at least: states of 39 GB or more
  // are too much for 24 GB.
  const TemporaryFolder folder;
  const Job job = job_of(
      scenario_source(folder.write("s.yaml",
                                   "workload: {network: {layers: 12, hidden: 4096, heads: 32, "
                                   "vocabulary: 1000}, sequence: 128}\n")),
      {}, 1e9, 4);
  const Catalog catalog = read_catalog(folder.write("c.yaml", test::small_catalog()));
  Start start = start_of(catalog, builds_of(catalog).front(), job);
  start = better_start(std::move(start), job, {});
  CHECK(start.evaluator->simulate({}).fits);
  CHECK_THAT(start.note, !Containing("on the GPU"));
}
