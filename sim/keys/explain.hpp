#pragma once

#include <string>
#include <vector>

#include "sim/keys/keys.hpp"

namespace tidegate {

/// What a key, a policy or a word of a report means, as text for a terminal.
///
/// `asked` is a dotted key of a scenario, of a profile (with or without "machine."), the last name
/// of one, a name of a policy, or a label of a report. Throws InputError with the nearest known
/// word when it is none of them.
std::string explain(const std::string& asked);

/// Everything that explain() knows, for completion: dotted keys, policies, words.
std::vector<std::string> explained_words();

/// Keys that --set takes: of the scenario, and of the profile behind "machine.".
std::vector<std::string> settable_keys();

/// Values that a key can only have: its words, flags, names of policies; empty when it is free.
std::vector<std::string> values_of(const std::string& key);

}  // namespace tidegate
