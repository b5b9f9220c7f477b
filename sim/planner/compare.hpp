#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/page/page.hpp"
#include "sim/planner/assess.hpp"

/// Which machine to buy or rent: every machine of a catalog with its best policy, side by side.
///
///   1. machines are looked at in the order of what an hour of them costs
///   2. one whose bound is behind a machine that was assessed, in time and in cost, is not
///   simulated
///   3. the rest are tuned with few simulations, predicted and priced (assess.hpp)
///   4. the front, the answer, what is not told apart from it, and the gain of each step in a grid
namespace tidegate::planner {

struct CompareOptions {
  AssessOptions assess;
  std::optional<double> days;   ///< the run may take at most
  std::optional<Money> budget;  ///< that purchase, energy and replacements, or rent, may take
  bool simulates_all = false;   ///< also those whose bound is behind
  /// Called when a machine begins, and while it is searched.
  std::function<void(std::size_t done, std::size_t all, const std::string& name)> progress =
      [](std::size_t, std::size_t, const std::string&) {};
};

/// One more part: two machines of one grid that differ in one place.
struct Upgrade {
  std::size_t from = 0, to = 0;
  std::string what;                    ///< "2 -> 4 drives a node"
  double gain = 0;                     ///< tokens/s
  Money price = 0;                     ///< of purchase
  double days = 0;                     ///< of the run, saved
  std::optional<double> per_thousand;  ///< tokens/s per 1000 of money; nothing for what costs none
};

struct Comparison {
  std::string catalog, date, currency, scenario, revision;
  bool is_example = false;
  Terms terms;
  double tokens = 0, tokens_per_iteration = 0;
  std::int64_t sequences = 0;
  std::optional<double> days;
  std::optional<Money> budget;
  double margin = 0;
  std::vector<Assessment> machines;  ///< in the order of the catalog
  std::vector<std::size_t> front;    ///< fastest first
  /// The cheapest that keeps days and budget; with a budget alone the fastest.
  std::optional<std::size_t> answer;
  std::vector<std::size_t> alike;  ///< that keep them too and are not told apart from the answer
  std::vector<Upgrade> upgrades;   ///< most gained per money first
  std::vector<Provenance> sources;
  bool is_interrupted = false;

  std::vector<std::size_t> trained() const;
  double per_million(const Assessment& a) const { return a.costs.total() / tokens * 1e6; }
};

/// Throws InputError when the scenario is wrong. What does not work on one machine is its reason.
Comparison compare_machines(const Catalog& catalog, const Job& job, const CompareOptions& options);

/// Fills front, answer, alike and upgrades from the machines.
void rank(Comparison& comparison);

/// For people: the answer first. `command` is how this comparison was asked for.
std::string to_text(const Comparison& comparison, const std::string& scenario,
                    std::size_t width = 80);
/// One JSON object, schema "tidegate.plan/1" (docs/plan_json.md).
std::string to_json(const Comparison& comparison);
/// A line per machine.
std::string to_csv(const Comparison& comparison);
page::Page comparison_page(const Comparison& comparison, const std::string& scenario);

}  // namespace tidegate::planner
