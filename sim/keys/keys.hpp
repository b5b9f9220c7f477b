#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/keys/type.hpp"

/// The keys of scenarios and profiles: one table, from which `explain`, the JSON Schemas and
/// completion follow.
///
/// The table is the pages docs/scenario.md and docs/profiles.md themselves, built into the program:
/// who adds a key to a reader writes its row there and nowhere else, and tests/sim/keys hold rows
/// and readers against each other in both directions.
namespace tidegate {

/// A row of a table `| key | of | type | default | meaning | mirrors |`.
struct Key {
  std::string section;          ///< "policy.optimizer", "workload.layers[]", "" of the file itself
  std::string name;             ///< "buffer_count"
  std::vector<std::string> of;  ///< names of the section's policies that have it; none: all
  Type type;
  bool is_required = false;
  std::string literal;           ///< the default as YAML, "" when it is none
  std::string otherwise;         ///< what holds when it is left out, in words
  std::string meaning, mirrors;  ///< as the page has it
  int line = 0;

  std::string path() const { return section.empty() ? name : section + "." + name; }
};

/// A row of a table `| name | meaning | mirrors |`: a policy.
struct PolicyName {
  std::string section, name, meaning, mirrors;
  int line = 0;
};

struct KeyTable {
  std::string page;  ///< "docs/scenario.md"
  std::vector<Key> keys;
  std::vector<PolicyName> policies;

  std::vector<const Key*> keys_of(std::string_view section) const;
  std::vector<const PolicyName*> policies_of(std::string_view section) const;
  bool has_section(std::string_view section) const;
  /// The sections whose keys stand below this key: itself, its elements ("[]"), its names (".*").
  std::vector<std::string> sections_below(const Key& key) const;
  /// The rows of a dotted path as a person writes it: numbers of elements and names of paths are
  /// what they are, "workload.layers[0].name", "paths.nvme.read".
  std::vector<const Key*> find(std::string_view path) const;
};

/// Reads a page. Throws InputError with its line when a row cannot be understood, a section of a
/// `map` is missing, or a row stands twice for the same policy.
KeyTable read_keys(std::string_view page, const std::string& name);

/// Of the pages that are built in.
const KeyTable& scenario_keys();
const KeyTable& profile_keys();

}  // namespace tidegate
