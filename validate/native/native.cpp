#include "validate/native/native.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>

#include <fmt/core.h>

#include "calib/fit/statistics.hpp"
#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "validate/suite/cases.hpp"

namespace tidegate {
namespace {

struct Case {
  NativeRow row;
  Expected expected;
  bool uses_files = false;
};

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

// Paths of one device are one resource: what uses a later one uses the first. Returns whether any
// was another's.
bool join_devices(Expected& e, const std::vector<NativePath>& paths) {
  std::map<std::string, ResourceId> first;
  std::map<std::size_t, ResourceId> becomes;
  for (const NativePath& path : paths) {
    const std::string device = rig::file_system_of(path.folder).device;
    const auto at = std::ranges::find(e.resources, path.name, &Resource::name);
    ensure(at != e.resources.end(), "a storage path has a resource of its name");
    const auto own = static_cast<std::size_t>(at - e.resources.begin());
    const auto [known, is_new] =
        first.try_emplace(device.empty() ? path.folder : device, static_cast<ResourceId>(own));
    if (!is_new) becomes[own] = known->second;
  }
  bool is_joined = false;
  for (Demand& demand : e.demands) {
    for (std::size_t i = 0; i < demand.share_count; ++i) {
      const auto other = becomes.find(index(demand.shares.at(i).resource));
      if (other == becomes.end()) continue;
      demand.shares.at(i).resource = other->second;
      is_joined = true;
    }
  }
  if (is_joined) e.predicted = simulate(e.plan, e.demands, e.resources);
  return is_joined;
}

Seconds step_of(const Expected& e) {
  return compare(e, {.timeline = e.predicted, .lateness = {}}).step.predicted;
}

Case prepare(const SuiteFile& file, const SuiteCase& c, const Rates& rates,
             const std::vector<NativePath>& paths, const NativeOptions& options) {
  TrialOptions trial{
      .pace = Pace::native, .storage = {}, .draws = options.draws, .seed = options.seed};
  for (const NativePath& path : paths) trial.storage.push_back(path.folder);
  Scenario scenario = scenario_of(file, c, overrides_of(rates));
  Case prepared{.row = {.name = c.name, .policy = scenario.policy.describe(), .cause = c.cause},
                .expected = expect(scenario, trial)};
  Expected& e = prepared.expected;
  prepared.uses_files = std::ranges::any_of(
      e.plan.works, [](const Work& work) { return std::holds_alternative<FileIo>(work); });
  const Seconds apart = step_of(e);
  prepared.row.predicted = join_devices(e, paths) ? step_of(e) : apart;
  if (e.interval) {  // as wide as that of paths apart
    const double longer = prepared.row.predicted / apart;
    e.interval = PredictionInterval{longer * e.interval->low, longer * e.interval->high};
  }
  prepared.row.interval = e.interval;
  return prepared;
}

void run_once(NativeRow& row, const Case& c, bool is_gated) {
  rig::check_interrupt();
  const Execution run = run_on(c.expected.rig, c.expected.plan);
  Comparison seen = compare(c.expected, run);
  row.runs.push_back({.step = seen.step.measured,
                      .lateness = seen.floor,
                      .spoiled = is_gated ? spoiled_by(run.foreign, c.uses_files) : ""});
  // The comparison that is shown is that of the median so far.
  const std::vector<double> clean = row.clean();
  const bool is_clean = row.runs.back().spoiled.empty();
  const auto distance = [&](Seconds step) { return std::abs(step.value() - calib::median(clean)); };
  if (!row.comparison || clean.empty() ||
      (is_clean && (clean.size() == 1 ||
                    distance(seen.step.measured) <= distance(row.comparison->step.measured)))) {
    row.comparison = std::move(seen);
  }
}

class Rounds {
 public:
  Rounds(std::vector<Case>& cases, const NativeOptions& options)
      : cases_(cases), options_(options), random_(options.seed) {}

  // Rounds in random order; more of them only for cases that have too few clean runs.
  void run() {
    const int most = options_.rounds + (options_.rounds + 1) / 2;
    for (int round = 0; round < most; ++round) {
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < cases_.size(); ++i) {
        if (wants_more(cases_[i].row, round)) order.push_back(i);
      }
      if (order.empty()) return;
      std::ranges::shuffle(order, random_);
      for (const std::size_t i : order) {
        tell(fmt::format("round {}: {}", round + 1, cases_[i].row.name));
        run_once(cases_[i].row, cases_[i], options_.is_gated);
      }
    }
  }

  NativeRow floor() {
    NativeRow row = cases_.front().row;
    for (int i = 0; i < options_.floor_runs; ++i) {
      tell(fmt::format("floor: {} ({} of {})", row.name, i + 1, options_.floor_runs));
      run_once(row, cases_.front(), options_.is_gated);
    }
    return row;
  }

 private:
  bool wants_more(const NativeRow& row, int round) const {
    return round < options_.rounds || static_cast<int>(row.clean().size()) < options_.least_clean;
  }
  void tell(const std::string& text) const {
    if (options_.progress) options_.progress(text);
  }

  std::vector<Case>& cases_;
  const NativeOptions& options_;
  std::mt19937_64 random_;
};

}  // namespace

std::vector<double> NativeRow::clean() const {
  std::vector<double> steps;
  for (const NativeRun& run : runs) {
    if (run.spoiled.empty()) steps.push_back(run.step.value());
  }
  return steps;
}

Seconds NativeRow::measured() const {
  const std::vector<double> steps = clean();
  return Seconds(steps.empty() ? 0 : calib::median(steps));
}

double NativeRow::spread() const {
  const std::vector<double> steps = clean();
  return steps.empty() ? 0 : std::ranges::max(steps) / std::ranges::min(steps) - 1;
}

double NativeRow::error() const { return Pair{predicted, measured()}.error(); }

std::optional<bool> NativeRow::is_inside() const {
  if (!interval || clean().empty()) return std::nullopt;
  return interval->contains(measured());
}

bool NativeSuite::is_conclusive(const NativeRow& row) const {
  return static_cast<int>(row.clean().size()) >= least_clean;
}

std::size_t NativeSuite::conclusive() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [this](const NativeRow& r) { return is_conclusive(r); }));
}

double NativeSuite::median_error() const {
  std::vector<double> errors;
  for (const NativeRow& row : rows) {
    if (is_conclusive(row)) errors.push_back(std::abs(row.error()));
  }
  return errors.empty() ? 0 : calib::median(errors);
}

double NativeSuite::worst_error() const {
  double most = 0;
  for (const NativeRow& row : rows) {
    if (is_conclusive(row)) most = std::max(most, std::abs(row.error()));
  }
  return most;
}

NativeSuite::Coverage NativeSuite::coverage() const {
  Coverage c;
  for (const NativeRow& row : rows) {
    if (!is_conclusive(row) || !row.interval) continue;
    ++c.medians;
    if (row.interval->contains(row.measured())) ++c.medians_inside;
    for (const double step : row.clean()) {
      ++c.all;
      if (row.interval->contains(Seconds(step))) ++c.inside;
    }
  }
  return c;
}

double NativeSuite::repeat_error() const { return repeatability(floor.clean()); }

Verdict NativeSuite::verdict() const {
  if (conclusive() < std::min(least_conclusive, rows.size())) return Verdict::inconclusive;
  return median_error() <= gate ? Verdict::agrees : Verdict::differs;
}

double repeatability(const std::vector<double>& values) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      differences.push_back(std::abs(std::log(values[i] / values[j])));
    }
  }
  return differences.empty() ? 0 : calib::median(differences);
}

std::string spoiled_by(const rig::Foreign& foreign, bool uses_files) {
  const calib::Row row{.quantity = "native",
                       .gate = uses_files ? calib::Gate::io : calib::Gate::cpu,
                       .device = "the drive"};
  return calib::spoiled_by(row, foreign, calib::GateLimits{});
}

NativeSuite run_native(const NativeOptions& options) {
  const SuiteFile file = read_suite(
      options.file.empty() ? TIDEGATE_DATA_DIR "/validate/suite/native.yaml" : options.file);
  const std::vector<SuiteCase> wanted = chosen(file, options.only);
  const std::vector<NativePath> paths = paths_of(file, options);
  NativeSuite suite{.hardware = options.hardware, .rates = {}, .floor = {}, .rows = {}};
  suite.least_clean = options.least_clean;
  suite.is_gated = options.is_gated;
  if (options.hardware.empty()) {
    RateOptions rates{.paths = paths,
                      .passes = options.passes,
                      .seed = options.seed,
                      .is_gated = options.is_gated};
    rates.progress = [&](const calib::ProgressNow& now) {
      if (options.progress) {
        const std::string left = now.done > 0 ? fmt::format(", about {:.0f} s left", now.left) : "";
        options.progress(fmt::format("rates: pass {} of {}, {} of {}{}", now.pass, now.passes,
                                     now.done, now.all, left));
      }
    };
    const calib::Measurements m = measure_rates(rates);
    suite.rates = rates_of(m, paths);
    suite.rate_seconds = m.seconds;
  } else {
    suite.rates = rates_of_profile(options.hardware, paths);
  }
  std::vector<Case> cases;
  for (const SuiteCase& c : wanted) cases.push_back(prepare(file, c, suite.rates, paths, options));
  Rounds runs(cases, options);
  suite.floor = runs.floor();
  runs.run();
  for (Case& c : cases) suite.rows.push_back(std::move(c.row));
  return suite;
}

}  // namespace tidegate
