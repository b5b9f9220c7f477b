#include "sim/run/rok.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "models/base/error.hpp"
#include "sim/run/changes.hpp"

namespace tidegate {
namespace {

constexpr std::int64_t most_by_default = 64;
constexpr std::array<std::string_view, 4> standing = {"parameters", "parameter shards",
                                                      "persistent parameters", "optimizer states"};

// A curve's name, and the texts of policy.activations that may give it: the first that is accepted.
struct PolicyChoice {
  std::string name;
  std::vector<std::string> texts;  ///< empty: the scenario's own
};

std::vector<PolicyChoice> known_choices(const Machine& machine) {
  std::vector<PolicyChoice> choices = {
      {"keep", {"keep"}},
      {"recompute full", {"{name: recompute, mode: full}"}},
      {"recompute selective", {"{name: recompute, mode: selective}"}},
  };
  for (const PolicyEntry& entry : policy_table()) {
    const bool is_named = entry.name == "keep" || entry.name == "recompute";
    if (entry.section != "activations" || is_named) continue;
    choices.push_back({std::string(entry.name), activation_texts(entry.name, machine)});
  }
  return choices;
}

bool is_asked(const std::string& word, const std::string& name) {
  return word == name || "recompute " + word == name ||
         (word == "recompute" && name == "recompute full");
}

std::vector<PolicyChoice> chosen(const std::vector<std::string>& words, const std::string& own,
                                 const Machine& machine) {
  const std::vector<PolicyChoice> known = known_choices(machine);
  std::vector<PolicyChoice> choices;
  for (const PolicyChoice& c : known) {
    const bool is_usual = c.name == "keep" || c.name.starts_with("recompute ") ||
                          c.name == "ssdtrain" || c.name == own;
    if (words.empty() && is_usual) choices.push_back(c);
  }
  for (const std::string& word : words) {
    const auto at =
        std::ranges::find_if(known, [&](const PolicyChoice& c) { return is_asked(word, c.name); });
    if (at == known.end()) {
      std::string text = "--policies " + word + ": is not known; there are: keep, full, selective";
      for (std::size_t i = 3; i < known.size(); ++i) text += ", " + known[i].name;
      throw InputError(text);
    }
    choices.push_back(*at);
  }
  return choices;
}

// What the scenario itself says of its activations, by name.
std::string own_policy(const yaml::Value& values) {
  const yaml::Value* policy = values.find("policy");
  const yaml::Value* activations = policy ? policy->find("activations") : nullptr;
  if (!activations) return "keep";
  const yaml::Value* name = activations->find("name");
  return name ? name->text : activations->text;
}

Bytes standing_bytes(const Report::Pool& pool) {
  std::int64_t sum = 0;
  for (const auto& [name, bytes] : pool.owners) {
    if (std::ranges::find(standing, name) != standing.end()) sum += bytes;
  }
  return Bytes(static_cast<double>(sum));
}

class Points {
 public:
  Points(const ScenarioSource& source, const std::vector<Override>& overrides)
      : source_(source), overrides_(overrides) {}

  /// The overrides with which a choice is accepted. Nothing when none is; then `why` says it.
  std::optional<std::vector<Override>> accepted(const PolicyChoice& choice,
                                                std::optional<InputError>& why) const {
    if (choice.texts.empty()) return overrides_;
    for (const std::string& text : choice.texts) {
      std::vector<Override> overrides = overrides_;
      overrides.emplace_back("policy.activations", text);
      try {
        load_scenario(source_, overrides);
        return overrides;
      } catch (const InputError& error) {
        if (!why) why = error;
      }
    }
    return std::nullopt;
  }

  RokPlot::Point at(std::vector<Override> overrides, std::int64_t micro_batch, RokPlot& plot,
                    RokPlot::Curve& curve) const {
    overrides.emplace_back("workload.micro_batch", std::to_string(micro_batch));
    Scenario scenario = load_scenario(source_, overrides);
    const Prediction p = predict(scenario);
    RokPlot::Point point{.micro_batch = micro_batch,
                         .throughput = p.report.model_rate_per_gpu,
                         .tokens_per_second = p.report.tokens_per_second,
                         .iteration_time = p.report.iteration_time};
    for (std::size_t i = 0; i < p.report.pools.size(); ++i) {
      const Report::Pool& pool = p.report.pools[i];
      if (p.plan.pools[i].place.tier != Tier::gpu) continue;
      point.activation_peak =
          std::max(point.activation_peak, pool.steady_peak - standing_bytes(pool));
      plot.room = std::min(plot.room, pool.capacity - standing_bytes(pool));
    }
    for (const Report::Overflow& o : p.report.overflows) point.overflows.push_back(o.pool);
    plot.revision = p.report.facts.revision;
    curve.policy = scenario.policy.activations->describe();
    return point;
  }

 private:
  const ScenarioSource& source_;
  const std::vector<Override>& overrides_;
};

}  // namespace

RokPlot rok_plot(const ScenarioSource& source, const std::vector<Override>& overrides,
                 const RokOptions& options) {
  const Scenario scenario = load_scenario(source, overrides);
  if (!scenario.workload.explicit_layers.empty()) {
    throw InputError(
        "plot rok: the sizes of workload.layers are fixed, so micro-batches cannot be compared; "
        "give workload.network or workload.config");
  }
  RokPlot plot{.scenario = scenario.name,
               .profile = scenario.machine.name(),
               .room = Bytes(std::numeric_limits<double>::infinity())};
  const std::string own = own_policy(scenario_values(source, overrides));
  const Points points(source, overrides);
  const bool is_default = options.micro_batches.empty();
  for (PolicyChoice choice : chosen(options.policies, own, scenario.machine)) {
    if (choice.name == own && own != "keep") choice.texts.clear();
    std::optional<InputError> why;
    const auto accepted = points.accepted(choice, why);
    // A policy nobody named is left out when it needs what the scenario does not say.
    if (!accepted && !options.policies.empty()) throw *why;
    if (!accepted) continue;
    RokPlot::Curve curve{.name = choice.name};
    std::vector<std::int64_t> sizes = options.micro_batches;
    for (std::int64_t b = 1; is_default && b <= most_by_default; b *= 2) sizes.push_back(b);
    for (const std::int64_t size : sizes) {
      curve.points.push_back(points.at(*accepted, size, plot, curve));
      if (is_default && !curve.points.back().fits()) break;
    }
    plot.curves.push_back(std::move(curve));
  }
  return plot;
}

}  // namespace tidegate
