#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"

/// What a search may choose between: lists of values for keys of a scenario, in the form that --set
/// takes. Every candidate is a list of overrides, so that it prints as a command that runs.
namespace tidegate {

struct Option {
  std::string tag;             ///< what conditions of other axes name: a policy, a stage, a value
  std::vector<Override> sets;  ///< empty: the scenario stays as it is
  bool is_today = false;       ///< the same as the scenario has it
  /// Set where a key below it is: it rewrites the scenario's value, unchanged, as a map.
  std::optional<Override> opens = std::nullopt;
};

/// One choice. An axis with a condition takes part where the option chosen on `needs` has one of
/// the tags; elsewhere its first option stands, which sets nothing.
struct Axis {
  std::string name;  ///< "optimizer", or a dotted key
  std::vector<Option> options;
  std::string needs;
  std::vector<std::string> needed_tags;
  /// Of a refined axis: one of these options has the least bound, whatever the other axes are; one
  /// of these the least standing memory of GPUs, and of the host. Empty: it does not matter there.
  std::vector<std::uint16_t> fastest, lean_gpu, lean_host;
  /// Where more memory is what makes it faster: all options, the bound rising and the memory
  /// falling from one to the next.
  std::vector<std::uint16_t> ever_leaner = {};
};

/// By axis: the option chosen.
using Picks = std::vector<std::uint16_t>;

/// The first `crossed` axes are tried in every combination; the rest one step at a time around the
/// most promising.
struct Space {
  std::vector<Axis> axes;
  std::size_t crossed = 0;

  Picks today() const { return Picks(axes.size(), 0); }
  bool applies(std::size_t axis, const Picks& picks) const;
  std::vector<Override> sets_of(const Picks& picks) const;
  /// Names of the axes that differ from the scenario.
  std::vector<std::string> changes_of(const Picks& picks) const;
  std::size_t count_changes(const Picks& picks) const;
  /// Every combination of the crossed axes, the rest as they are, in the order of the options.
  std::vector<Picks> crossed_picks() const;
  /// Every combination of all axes. A count, since there may be more than memory holds.
  double size() const;
};

/// "key=v1,v2": an axis of these values. Commas within brackets, braces or quotes do not divide.
/// Throws InputError when there is no key, no value, or a value twice.
Axis read_axis(const std::string& text, const yaml::Value& scenario);

/// Every combination of these axes. Throws InputError when a key comes twice or the combinations
/// are too many.
Space grid_of(const std::vector<std::string>& texts, const yaml::Value& scenario);

/// What can be tuned in a scenario, from the table of default_space.cpp: where optimizer states,
/// parameters and activations live, ZeRO stage, division of the batch (at the same tokens per
/// iteration) and of the GPUs are crossed; sizes, counts and switches are refined. `only`: names of
/// axes, or a part of a name; all when empty. Few enough combinations are all crossed. Throws
/// InputError for a name that fits none, with those that exist.
Space default_space(const Scenario& scenario, const yaml::Value& values,
                    const std::vector<std::string>& only = {});

/// A value in the one line that --set takes.
std::string set_text(const yaml::Value& value);

/// The name of the policy that a section of `values` chooses.
std::string policy_name(const yaml::Value& values, std::string_view section);

}  // namespace tidegate
