#pragma once

#include <string>

namespace tidegate {

/// Throws InputError for a key that begins with no section of a scenario, with those that end so.
void check_key(const std::string& flag, const std::string& key);

}  // namespace tidegate
