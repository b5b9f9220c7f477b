#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/graph/layer_graph.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/search/bound.hpp"

namespace tidegate {

/// What is known of a configuration without simulating it.
struct Screening {
  std::string refusal;  ///< why it is not a configuration; empty when it is one
  Bound bound;
};

/// What a simulation says of a configuration, as far as configurations are compared by it.
struct Trial {
  struct Wear {
    std::string path;
    Bytes written_per_day;
    std::optional<double> life_years;  ///< of a drive whose endurance is known and that is written
    bool operator==(const Wear&) const = default;
  };
  Seconds iteration_time;  ///< steady
  double tokens_per_second = 0;
  bool fits = false;
  std::vector<Need> needs;  ///< by pool: highest of all iterations; of a GPU, what is reserved
  std::vector<Wear> wear;   ///< by storage path
  bool operator==(const Trial&) const = default;

  /// What configurations are ranked by: time for a token, and for an iteration where the workload
  /// has none.
  Seconds pace() const {
    return tokens_per_second > 0 ? Seconds(1 / tokens_per_second) : iteration_time;
  }
  /// Of the fullest pool: part of its capacity that is needed.
  double fullest() const;
};

/// Looks at variations of one scenario. Reads its profile once; a variation that changes the
/// machine reads the profile again. Every function is a pure function of the sets, and may be
/// called from several threads at the same time.
class Evaluator {
 public:
  /// `overrides` hold for every variation. Throws InputError when the scenario has problems.
  Evaluator(ScenarioSource source, std::vector<Override> overrides);

  const std::string& path() const { return source_.path; }
  const std::vector<Override>& overrides() const { return overrides_; }
  /// The values of the source with the overrides, those of the profile left out.
  const yaml::Value& values() const { return draft_.root; }

  Scenario scenario(const std::vector<Override>& sets) const;
  Screening screen(const std::vector<Override>& sets) const;
  /// The same numbers as predict's report. Three iterations are simulated, whose last two are the
  /// steady ones, and as many as the scenario says (at least three) where the two differ by more
  /// than 0.1 %, where a policy needs more, and where a drive has a cache that fills.
  /// Throws InputError for what screen refuses.
  Trial simulate(const std::vector<Override>& sets) const;

 private:
  struct Prepared {
    LayerGraph graph;
    KernelTimes times;
  };
  const Prepared& prepared(const Scenario& scenario, const std::vector<Override>& sets) const;

  ScenarioSource source_;
  std::vector<Override> overrides_;
  Draft draft_;
  mutable std::mutex guard_;
  mutable std::map<std::string, Prepared> prepared_;  // by what changes the workload or the machine
};

}  // namespace tidegate
