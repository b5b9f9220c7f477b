#include "sim/search/tune.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>

#include "sim/run/predict.hpp"
#include "sim/search/limits.hpp"
#include "sim/search/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;
using test::TemporaryFolder;

namespace {

const std::string scenarios = std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/";

struct Small {
  std::string file;
  std::vector<Override> overrides;
  std::vector<std::string> axes;
};

const std::vector<Small> small_spaces = {
    {"mlp_offload_70b.yaml",
     {{"workload.network.layers", "10"}},
     {"policy.optimizer.buffer_count=12,16,24,32",
      "policy.optimizer.assignment=proportional,{modulo: 3},{shares: [2, 1]},{shares: [1, 1]}",
      "policy.optimizer.cache=true,false"}},
    {"zero_infinity_70b.yaml",
     {{"workload.network.layers", "10"}},
     {"policy.optimizer=zero_offload,{name: zero_infinity, path: nvme},{name: zero_infinity, path: "
      "pfs},{name: mlp_offload, paths: [nvme, pfs]}",
      "policy.activations=keep,{name: recompute, mode: full}",
      "memory.expandable_segments=true,false", "policy.zero.stage=2,3"}},
    {"qwen25_7b_twin_flow_a100.yaml",
     {{"workload.accumulation", "1"}, {"workload.micro_batch", "1"}, {"workload.sequence", "1024"}},
     {"policy.optimizer.ratio=0.1,0.3,0.5,0.7,0.9",
      "policy.activations=keep,{name: recompute, mode: selective},{name: recompute, mode: full}"}},
    {"llama2_7b_zero_offload_4090.yaml",
     {{"workload.accumulation", "2"}, {"workload.sequence", "512"}},
     {"policy.zero.stage=1,2,3", "policy.parameters=resident,host",
      "policy.optimizer.pin_memory=true,false"}},
    {"llama31_8b_h200.yaml",
     {{"workload.accumulation", "2"}, {"workload.sequence", "1024"}},
     {"policy.zero.stage=0,1,2,3", "policy.activations=keep,{name: recompute, mode: full}",
      "policy.zero.reduce_bucket_size=100000000,500000000"}},
    {"ssdtrain_mlp_offload_a100.yaml",
     {{"workload.network.layers", "2"}, {"workload.accumulation", "1"}},
     {"policy.activations=keep,{name: recompute, mode: full},{name: ssdtrain, to: [array4, "
      "array3], record_first: false}",
      "policy.optimizer.buffer_count=9,12,24"}},
};

std::string text_of(const std::vector<Override>& sets) {
  std::string text;
  for (const auto& [key, value] : sets) text += key + "=" + value + " ";
  return text;
}

// The shortest steady iteration of all combinations that fit, each predicted by itself.
double exhaustive(const Small& small, const Space& space) {
  double best = 1e300;
  for (const Picks& picks : space.crossed_picks()) {
    std::vector<Override> all = small.overrides;
    for (const Override& set : space.sets_of(picks)) all.push_back(set);
    all.emplace_back("iterations", "6");
    try {
      Scenario scenario = load_scenario(scenarios + small.file, all);
      const Report report = predict(scenario).report;
      if (report.fits) best = std::min(best, report.iteration_time.value());
    } catch (const InputError&) {
      continue;
    }
  }
  return best;
}

const Small cheap = {"zero_infinity_70b.yaml",
                     {{"workload.network.layers", "4"}},
                     {"policy.optimizer.buffer_count=12,16,50",
                      "policy.optimizer.sub_group_size=50000000,100000000"}};

Space grid(const Evaluator& evaluator, const Small& small) {
  return grid_of(small.axes, evaluator.values());
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("the tuned configuration is the optimum of small spaces", "[tune]") {
  for (const Small& small : small_spaces) {
    INFO(small.file);
    const Evaluator evaluator(scenario_source(scenarios + small.file), small.overrides);
    const Space space = grid(evaluator, small);
    const Tuning tuning = tune(evaluator, space, {.threads = 2});
    const double best = exhaustive(small, space);
    REQUIRE(best < 1e300);
    REQUIRE(tuning.best);
    INFO(text_of(tuning.best->sets));
    // Three iterations against six: the two agree where the third is as the second.
    CHECK(tuning.best->trial->iteration_time.value() == Approx(best).epsilon(1e-4));
    CHECK(tuning.is_proved);
    CHECK(tuning.counts.simulated <= space.crossed_picks().size());
    CHECK(tuning.bound == tuning.best->trial->iteration_time);
  }
}

// Given up after one simulation: nearly everything is open.
TEST_CASE("nothing of a space takes less than the bound of what was left open", "[tune]") {
  for (const Small& small : {small_spaces[0], small_spaces[2], small_spaces[4]}) {
    INFO(small.file);
    const Evaluator evaluator(scenario_source(scenarios + small.file), small.overrides);
    const Space all = grid(evaluator, small);
    Space refined = all;
    refined.crossed = 1;
    for (std::size_t a = 1; a < refined.axes.size(); ++a) {
      Axis& axis = refined.axes[a];
      for (std::uint16_t o = 0; o < axis.options.size(); ++o) axis.fastest.push_back(o);
      axis.lean_gpu = axis.lean_host = axis.fastest;
    }
    const Tuning tuning = tune(evaluator, refined, {.most_simulations = 1});
    CHECK_FALSE(tuning.is_proved);
    CHECK(tuning.counts.open > 0);
    REQUIRE(tuning.best);
    CHECK(tuning.bound < tuning.best->trial->iteration_time);
    CHECK(tuning.bound.value() <= exhaustive(small, all));
    // As high as the bounds of all combinations allow.
    Seconds least = tuning.best->trial->iteration_time;
    for (const Picks& picks : all.crossed_picks()) {
      const Screening s = evaluator.screen(all.sets_of(picks));
      if (s.refusal.empty() && s.bound.may_fit()) least = std::min(least, s.bound.time);
    }
    CHECK(tuning.bound == least);
  }
}

TEST_CASE("bounds spare simulations and count what they spare", "[tune]") {
  const Small& small = small_spaces[1];
  const Evaluator evaluator(scenario_source(scenarios + small.file), small.overrides);
  const Tuning tuning = tune(evaluator, grid(evaluator, small), {});
  const Tuning::Counts& n = tuning.counts;
  // 4 optimizers x 2 activations x 2 allocators x 2 stages; three optimizers need stage 3.
  CHECK(n.crossed == 32);
  CHECK(n.refused == 12);
  CHECK(n.simulated < 20);
  CHECK(n.cannot_win + n.cannot_fit > 0);
  CHECK(n.open == 0);
}

TEST_CASE("the number of threads changes nothing", "[tune]") {
  const Small& small = small_spaces[0];
  const Evaluator evaluator(scenario_source(scenarios + small.file), small.overrides);
  const Space space = grid(evaluator, small);
  const Tuning one = tune(evaluator, space, {.threads = 1});
  const Tuning four = tune(evaluator, space, {.threads = 4});
  REQUIRE(one.all.size() == four.all.size());
  for (std::size_t i = 0; i < one.all.size(); ++i) {
    CHECK(one.all[i].picks == four.all[i].picks);
    CHECK(one.all[i].trial == four.all[i].trial);
  }
  CHECK(one.counts.screened == four.counts.screened);
}

TEST_CASE("a simulation of the search says what predict says", "[tune]") {
  const Evaluator evaluator(scenario_source(scenarios + "mlp_offload_70b.yaml"), {});
  const std::vector<Override> sets = {{"policy.optimizer.buffer_count", "16"}};
  const Trial trial = evaluator.simulate(sets);
  Scenario scenario = load_scenario(evaluator.path(), sets);
  const Report report = predict(scenario).report;
  // Six iterations alternate between two times, of which three have the same two.
  CHECK(trial.iteration_time.value() == Approx(report.iteration_time.value()).epsilon(1e-6));
  CHECK(trial.fits == report.fits);
  CHECK(trial.tokens_per_second == Approx(report.tokens_per_second).epsilon(1e-6));
  REQUIRE(trial.needs.size() == report.pools.size());
  for (std::size_t p = 0; p < report.pools.size(); ++p) {
    const auto& allocator = report.pools[p].allocator;
    const Bytes peak =
        allocator ? std::max(allocator->reserved_peak, report.pools[p].peak) : report.pools[p].peak;
    CHECK(trial.needs[p].bytes == peak);
  }
  REQUIRE(trial.wear.size() == report.paths.size());
  for (std::size_t p = 0; p < report.paths.size(); ++p) {
    const double written = report.paths[p].written_per_day.value();
    CHECK(trial.wear[p].written_per_day.value() == Approx(written).epsilon(1e-6));
  }
}

TEST_CASE("limits hold back what exceeds them", "[tune]") {
  const Evaluator evaluator(scenario_source(scenarios + cheap.file), cheap.overrides);
  const Space space = grid(evaluator, cheap);
  const Machine& machine = evaluator.scenario({}).machine;
  const Tuning free = tune(evaluator, space, {});
  REQUIRE(free.best);
  SECTION("host memory") {
    double most = 0;
    for (const Need& need : free.best->trial->needs) {
      if (need.is_host) most = need.bytes.value();
    }
    TuneOptions options;
    options.limits.bytes["host"] = Bytes(most - 1);
    const Tuning tuning = tune(evaluator, space, options);
    for (const Candidate& c : tuning.all) {
      for (const Need& need : c.trial->needs) {
        if (need.is_host && need.bytes.value() >= most) CHECK(!c.is_acceptable());
      }
    }
    CHECK(tuning.best->trial->iteration_time >= free.best->trial->iteration_time);
    CHECK(tuning.best->picks != free.best->picks);
  }
  SECTION("changes") {
    // 50 and 1e8 are the scenario's own values: one change is one of the two keys.
    TuneOptions options;
    options.limits.changes = 1;
    const Tuning tuning = tune(evaluator, space, options);
    CHECK(tuning.counts.over_limits == 2);
    CHECK(tuning.best->changes.size() <= 1);
  }
  SECTION("names and values are checked") {
    CHECK_THROWS_AS(read_limits({"hots=1 GiB"}, machine), InputError);
    CHECK_THROWS_WITH(read_limits({"host=1"}, machine),
                      Containing("--limit host=1: '1' has no unit") && !Containing(":1:1"));
    CHECK_THROWS_AS(read_limits({"changes=-1"}, machine), InputError);
    const Limits limits = read_limits({"nvme=1 TB", "life=2.5", "changes=3"}, machine);
    CHECK(limits.bytes.at("nvme") == Bytes(1e12));
    CHECK(limits.life_years == 2.5);
    CHECK(limits.changes == 3U);
  }
}

TEST_CASE("a drive that would wear out too soon is no choice", "[tune]") {
  // 4 layers write 12 B for each of some 4e9 parameters an iteration of some 20 s: 100 TB a year
  // would be 2.5 GB in 800 s. An endurance of 1 TB lasts less than a day.
  const Evaluator evaluator(scenario_source(scenarios + cheap.file),
                            {{"workload.network.layers", "4"},
                             {"machine.paths.nvme.endurance", "{value: 1 TB, assumed: toy}"}});
  TuneOptions options;
  options.limits.life_years = 1;
  const Tuning tuning = tune(evaluator, grid(evaluator, cheap), options);
  CHECK(!tuning.best);
  for (const Candidate& c : tuning.all) {
    CHECK(c.trial->wear.front().life_years.value() < 1.0 / 365);
    CHECK(!c.violates.empty());
  }
}

TEST_CASE("finished simulations are taken over from a file that was cut off", "[tune]") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "results.jsonl").string();
  const Evaluator evaluator(scenario_source(scenarios + cheap.file), cheap.overrides);
  const Space space = grid(evaluator, cheap);
  TuneOptions options;
  options.simulates_all = true;
  Tuning whole;
  {
    ResultsLog log(path, evaluator, ResultsLog::Mode::fresh);
    whole = tune(evaluator, space, options, &log);
  }
  auto lines = lines_of(path);
  REQUIRE(lines.size() == 7);  // what they are of, and six results
  {
    std::ofstream out(path, std::ios::trunc);
    for (int i = 0; i < 4; ++i) out << lines[static_cast<std::size_t>(i)] << "\n";
    out << lines[4].substr(0, lines[4].size() / 2);
  }
  {
    ResultsLog log(path, evaluator, ResultsLog::Mode::resume);
    const Tuning again = tune(evaluator, space, options, &log);
    CHECK(again.counts.resumed == 3);
    REQUIRE(again.all.size() == whole.all.size());
    for (std::size_t i = 0; i < whole.all.size(); ++i)
      CHECK(again.all[i].trial == whole.all[i].trial);
  }
  CHECK(lines_of(path).size() == 7);
  CHECK_THROWS_AS(ResultsLog(path, evaluator, ResultsLog::Mode::fresh), InputError);
  const Evaluator other(scenario_source(scenarios + cheap.file),
                        {{"workload.network.layers", "5"}});
  CHECK_THROWS_AS(ResultsLog(path, other, ResultsLog::Mode::resume), InputError);
}

TEST_CASE("a file that holds no results is refused and left as it is", "[tune]") {
  const TemporaryFolder folder;
  const Evaluator evaluator(scenario_source(scenarios + cheap.file), cheap.overrides);
  for (const std::string text : {"notes\n", "notes without an end", "[1]\n", "{\"schema\": 1}\n"}) {
    const std::string path = folder.write("notes.txt", text);
    CHECK_THROWS_WITH(ResultsLog(path, evaluator, ResultsLog::Mode::resume),
                      Containing("notes.txt:1:0: is no file of results"));
    std::ifstream in(path);
    CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == text);
  }
}

TEST_CASE("what is worth a change takes few simulations", "[tune]") {
  const Evaluator evaluator(scenario_source(scenarios + "mlp_offload_70b.yaml"),
                            {{"workload.network.layers", "8"}});
  const Space space =
      default_space(evaluator.scenario({}), evaluator.values(), {"optimizer", "zero"});
  std::size_t before = 0, after = 0;
  TuneOptions options;
  options.most_simulations = 60;
  options.progress = [&](const TuneOptions::Progress& p) {
    (std::string(p.doing) == "what is worth it" ? after : before) = p.done;
  };
  const Tuning tuning = tune(evaluator, space, options);
  REQUIRE(tuning.best);
  const std::size_t changes = tuning.best->changes.size();
  REQUIRE(changes >= 4);
  // Each change alone, and each once more in turn.
  CHECK(after <= before + 2 * changes);
  REQUIRE(tuning.simplest);
  CHECK(tuning.simplest->trial->iteration_time <=
        tuning.best->trial->iteration_time * (1 + options.margin));
  CHECK(tuning.simplest->changes.size() <= changes);
}

TEST_CASE("a search that is stopped has the best so far", "[tune]") {
  const Evaluator evaluator(scenario_source(scenarios + cheap.file), cheap.overrides);
  const Space space = grid(evaluator, cheap);
  std::atomic<int> asked = 0;
  TuneOptions options;
  options.simulates_all = true;
  // Six screenings are one look, and each simulation another.
  options.is_stopped = [&] { return ++asked > 6; };
  const Tuning tuning = tune(evaluator, space, options);
  CHECK(tuning.is_interrupted);
  CHECK(!tuning.is_proved);
  CHECK(tuning.counts.simulated < 6);
}

TEST_CASE("every index is worked on once, and a failure is thrown", "[tune]") {
  for (const std::size_t threads : {1U, 3U, 8U}) {
    std::vector<std::atomic<int>> seen(100);
    parallel_for(seen.size(), threads, [&](std::size_t i) { ++seen[i]; }, [] { return false; });
    CHECK(std::ranges::all_of(seen, [](const auto& n) { return n == 1; }));
    const auto fail = [](std::size_t i) {
      if (i >= 40) throw InputError("at " + std::to_string(i));
    };
    CHECK_THROWS_WITH(parallel_for(100, threads, fail, [] { return false; }), "at 40");
  }
}
