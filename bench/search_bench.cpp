// What a search costs: candidates screened and candidates simulated to the steady state per second
// of CPU time, over the usual space of a scenario.
//
//   search_bench [SCENARIO] [count=N] [repeat=N] [threads=N] [only=screened|steps|space|today]
//
// Rows: all crossed choices screened; simulated: `today` again and again, the scenario with one
// refined key changed (`steps`), and any combination of the space that the reader takes and that
// may fit (`space`, drawn with a fixed seed).
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "bench/measure.hpp"
#include "models/base/error.hpp"
#include "sim/search/evaluate.hpp"
#include "sim/search/parallel.hpp"
#include "sim/search/space.hpp"

namespace {

using namespace tidegate;
using Candidates = std::vector<std::vector<Override>>;

struct Options {
  std::size_t count, repeat, threads;
  std::string only;
  bool wants(const std::string& row) const { return only.empty() || only == row; }
};

bool is_choice(const Evaluator& evaluator, const std::vector<Override>& sets) {
  const Screening s = evaluator.screen(sets);
  return s.refusal.empty() && s.bound.may_fit();
}

// One option of one refined axis changed, as often as needed.
Candidates steps(const Evaluator& evaluator, const Space& space, std::size_t count) {
  Candidates all;
  for (std::size_t a = space.crossed; a < space.axes.size(); ++a) {
    for (std::uint16_t o = 1; o < space.axes[a].options.size(); ++o) {
      Picks picks = space.today();
      picks[a] = o;
      if (!space.applies(a, picks)) continue;
      const auto sets = space.sets_of(picks);
      if (is_choice(evaluator, sets)) all.push_back(sets);
    }
  }
  for (std::size_t i = 0; !all.empty() && all.size() < count; ++i) all.push_back(all[i]);
  all.resize(count);
  return all;
}

Candidates anywhere(const Evaluator& evaluator, const Space& space, std::size_t count) {
  std::mt19937 random(20261130);
  Candidates all;
  while (all.size() < count) {
    Picks picks = space.today();
    for (std::size_t a = 0; a < space.axes.size(); ++a) {
      const auto option = static_cast<std::uint16_t>(random() % space.axes[a].options.size());
      if (space.applies(a, picks)) picks[a] = option;
    }
    const auto sets = space.sets_of(picks);
    if (is_choice(evaluator, sets)) all.push_back(sets);
  }
  return all;
}

template <class Work>
void row(const char* name, std::size_t count, const Options& options, Work&& work) {
  double best = 0, wall = 0;
  for (std::size_t i = 0; i < options.repeat; ++i) {
    const double before = bench::cpu_seconds();
    const auto began = std::chrono::steady_clock::now();
    parallel_for(count, options.threads, work, [] { return false; });
    const double took = bench::cpu_seconds() - before;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
    if (i == 0 || took < best) best = took;
    if (i == 0 || passed.count() < wall) wall = passed.count();
  }
  const auto n = static_cast<double>(count);
  fmt::print("{:<22}{:>8}{:>10.2f}{:>12.2f}{:>16.0f}{:>16.0f}\n", name, count, best, 1e3 * best / n,
             n / best, n / wall);
}

void run(const std::string& file, const Options& options) {
  const Evaluator evaluator(scenario_source(file), {});
  const Space space = default_space(evaluator.scenario({}), evaluator.values());
  fmt::print("{:<22}{:>8}{:>10}{:>12}{:>16}{:>16}\n", "", "number", "CPU s", "ms each",
             "per CPU second", "per second");
  if (options.wants("screened")) {
    const auto picks = space.crossed_picks();
    row("screened, crossed", picks.size(), options,
        [&](std::size_t i) { evaluator.screen(space.sets_of(picks[i])); });
  }
  const auto simulate = [&](const char* name, const Candidates& list) {
    std::atomic<std::size_t> fitting = 0;
    row(name, list.size(), options,
        [&](std::size_t i) { fitting += evaluator.simulate(list[i]).fits; });
  };
  if (options.wants("today")) simulate("simulated, today", Candidates(options.count));
  if (options.wants("steps")) simulate("simulated, steps", steps(evaluator, space, options.count));
  if (options.wants("space")) {
    simulate("simulated, space", anywhere(evaluator, space, options.count));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    keep_freed_memory();
    const auto words = bench::words_of(argc, argv);
    const std::string scenario =
        words.empty() ? TIDEGATE_SOURCE_DIR "/scenarios/mlp_offload_70b.yaml" : words.front();
    const auto number = [&](const char* key, const char* usual) {
      return std::stoul(bench::option(argc, argv, key, usual));
    };
    run(scenario, {.count = number("count", "100"),
                   .repeat = number("repeat", "3"),
                   .threads = number("threads", "1"),
                   .only = bench::option(argc, argv, "only", "")});
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
