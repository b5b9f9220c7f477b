#include "validate/native/native.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"
#include "validate/native/predictions.hpp"

namespace tidegate {
namespace {

// Folders of the storage paths, by the order of the profile.
std::vector<NativePath> paths_of(const SuiteFile& file, const NativeOptions& options) {
  const Scenario first = scenario_of(file, file.cases.at(0));
  std::vector<NativePath> paths;
  for (const StoragePath& path : first.machine.paths()) paths.push_back({path.name, {}});
  const std::size_t given = options.storage.size();
  if (given != 1 && given != paths.size()) {
    throw InputError(
        fmt::format("--storage is given {} times; give one folder, or one for each of "
                    "the {} storage paths of the cases",
                    given, paths.size()));
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    paths[i].folder = options.storage[given == 1 ? 0 : i];
    rig::file_system_of(paths[i].folder);  // throws for what is no folder
  }
  return paths;
}

/// A run of case `of` after pass `before`.
struct Seen {
  std::size_t of = 0, before = 0;
  Execution run;
};

/// What is measured, in its order: passes of rates and runs between them.
class Measuring {
 public:
  Measuring(const NativeOptions& options, const std::vector<NativePath>& paths,
            const NativeMachine& machine)
      : options_(options), paths_(paths), machine_(machine), random_(options.seed) {}

  /// The first pass, and more where it lacks a rate.
  void first_pass() {
    if (!options_.hardware.empty()) return;
    constexpr std::size_t most = 3;
    do {
      pass();
    } while (!is_whole(joined(passes_)) && passes_.size() < most);
  }

  std::vector<Seen> floor(const NativeCase& first) {
    std::vector<Seen> seen;
    for (int i = 0; i < options_.floor_runs; ++i) {
      tell(fmt::format("floor: {} ({} of {})", first.source.name, i + 1, options_.floor_runs));
      seen.push_back(once(first, 0));
    }
    pass();
    return seen;
  }

  // More rounds than wanted only for cases that have too few clean runs.
  std::vector<Seen> rounds(const std::vector<NativeCase>& cases) {
    std::vector<Seen> seen;
    std::vector<int> clean(cases.size());
    const int most = options_.rounds + (options_.rounds + 1) / 2;
    for (int round = 0; round < most; ++round) {
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        if (round < options_.rounds || clean[i] < options_.least_clean) order.push_back(i);
      }
      if (order.empty()) break;
      std::ranges::shuffle(order, random_);
      for (const std::size_t i : order) {
        tell(fmt::format("round {}: {}", round + 1, cases[i].source.name));
        seen.push_back(once(cases[i], i));
        clean[i] += is_clean(seen.back(), cases[i]) ? 1 : 0;
      }
      pass();
    }
    return seen;
  }

  const std::vector<calib::Measurements>& passes() const { return passes_; }

  bool is_clean(const Seen& seen, const NativeCase& c) const { return spoiled(seen, c).empty(); }
  std::string spoiled(const Seen& seen, const NativeCase& c) const {
    return options_.is_gated ? spoiled_by(seen.run.foreign, c.uses_files) : "";
  }

 private:
  void pass() {
    if (!options_.hardware.empty()) return;
    RateOptions rates{
        .paths = paths_, .seed = options_.seed + passes_.size(), .is_gated = options_.is_gated};
    rates.progress = [&](const calib::ProgressNow& now) {
      tell(fmt::format("rates, pass {}: {} of {}", passes_.size() + 1, now.done, now.all));
    };
    passes_.push_back(machine_.measure(rates));
  }
  Seen once(const NativeCase& c, std::size_t of) const {
    rig::check_interrupt();
    const std::size_t before = passes_.empty() ? 0 : passes_.size() - 1;
    return {of, before, machine_.run(c.expected.rig, c.expected.plan)};
  }
  void tell(const std::string& text) const {
    if (options_.progress) options_.progress(text);
  }

  const NativeOptions& options_;
  const std::vector<NativePath>& paths_;
  const NativeMachine& machine_;
  std::mt19937_64 random_;
  std::vector<calib::Measurements> passes_;
};

// The comparison that is shown is that of the clean run nearest to the median.
std::optional<Comparison> shown(const NativeRow& row, std::vector<Comparison>& all) {
  if (all.empty()) return std::nullopt;
  std::size_t best = all.size() - 1;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double distance = std::abs(row.runs[i].step.value() - row.measured().value());
    if (!row.runs[i].spoiled.empty() || distance >= least) continue;
    least = distance;
    best = i;
  }
  return std::move(all[best]);
}

/// Runs held against what the rates on both sides of them predict.
class Judging {
 public:
  Judging(const SuiteFile& file, const std::vector<NativePath>& paths, const Measuring& measuring)
      : file_(file), paths_(paths), measuring_(measuring) {
    const auto& passes = measuring.passes();
    for (std::size_t p = 0; p + 1 < passes.size(); ++p) {
      rates_.push_back(rates_of(around(passes, p), paths));
    }
  }

  NativeRow row(const NativeCase& c, const std::vector<const Seen*>& seen) const {
    NativeRow row{.name = c.source.name, .policy = c.policy, .cause = c.source.cause};
    row.forecast = step_of(c.expected);
    std::vector<Comparison> all;
    std::vector<std::optional<Expected>> by_pass(rates_.size());
    for (const Seen* s : seen) {
      all.push_back(compare(expected(c, s->before, by_pass), s->run));
      const Comparison& now = all.back();
      row.runs.push_back({.step = now.step.measured,
                          .predicted = now.step.predicted,
                          .lateness = now.floor,
                          .spoiled = measuring_.spoiled(*s, c)});
    }
    row.comparison = shown(row, all);
    return row;
  }

 private:
  const Expected& expected(const NativeCase& c, std::size_t before,
                           std::vector<std::optional<Expected>>& by_pass) const {
    if (before >= rates_.size()) return c.expected;  // of a profile
    if (!by_pass[before]) by_pass[before] = with_rates(file_, c, rates_[before], paths_);
    return *by_pass[before];
  }

  const SuiteFile& file_;
  const std::vector<NativePath>& paths_;
  const Measuring& measuring_;
  std::vector<Rates> rates_;  // by the pass before
};

// The values of `first` with the uncertainties of `all`.
Rates with_uncertainties(Rates first, const Rates& all) {
  for (std::size_t s = 0; s < first.size(); ++s) {
    for (calib::Entry& e : first[s].entries) {
      const auto at = std::ranges::find(all[s].entries, e.key, &calib::Entry::key);
      if (at != all[s].entries.end()) e.uncertainty = at->uncertainty;
    }
  }
  return first;
}

std::vector<const Seen*> of_case(const std::vector<Seen>& seen, std::size_t i) {
  std::vector<const Seen*> own;
  for (const Seen& s : seen) {
    if (s.of == i) own.push_back(&s);
  }
  return own;
}

void take_rates(NativeSuite& suite, const Measuring& measuring,
                const std::vector<NativePath>& paths) {
  if (measuring.passes().empty()) return;
  const calib::Measurements all = joined(measuring.passes());
  suite.first = with_uncertainties(std::move(suite.first), rates_of(all, paths, Spread::over_all));
  suite.all = rates_of(all, paths, Spread::of_neighbours);
  suite.passes = all.passes;
  suite.rate_seconds = all.seconds;
}

}  // namespace

NativeSuite run_native(const NativeOptions& options, const NativeMachine& machine) {
  const SuiteFile file = read_suite(
      options.file.empty() ? TIDEGATE_DATA_DIR "/validate/suite/native.yaml" : options.file);
  const std::vector<SuiteCase> wanted = chosen(file, options.only);
  const std::vector<NativePath> paths = paths_of(file, options);
  NativeSuite suite{.hardware = options.hardware, .is_gated = options.is_gated};
  suite.least_clean = options.least_clean;
  if (!options.hardware.empty()) suite.first = rates_of_profile(options.hardware, paths);
  Measuring measuring(options, paths, machine);
  measuring.first_pass();
  if (options.hardware.empty()) suite.first = rates_of(joined(measuring.passes()), paths);
  std::vector<NativeCase> cases;
  for (const SuiteCase& c : wanted) cases.push_back(native_case(file, c, suite.first, paths));
  const std::vector<Seen> floor = measuring.floor(cases.front());
  const std::vector<Seen> seen = measuring.rounds(cases);
  take_rates(suite, measuring, paths);
  suite.knows_traffic = std::ranges::all_of(seen, [&](const Seen& s) {
    return !cases[s.of].uses_files || s.run.foreign.bytes_per_second;
  });
  const Judging judging(file, paths, measuring);
  suite.floor = judging.row(cases.front(), of_case(floor, 0));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    NativeRow row = judging.row(cases[i], of_case(seen, i));
    row.forecast_reach = reach_of(file, cases[i], suite.first, options.draws, options.seed);
    row.reach = suite.all.empty()
                    ? row.forecast_reach
                    : reach_of(file, cases[i], suite.all, options.draws, options.seed);
    suite.rows.push_back(std::move(row));
  }
  return suite;
}

}  // namespace tidegate
