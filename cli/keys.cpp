#include "cli/keys.hpp"

#include <vector>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/keys/explain.hpp"

namespace tidegate {

void check_key(const std::string& flag, const std::string& key) {
  const std::vector<std::string> known = settable_keys();
  const std::string head = key.substr(0, key.find_first_of(".["));
  std::string meant;
  for (const std::string& one : known) {
    if (one.substr(0, one.find_first_of(".[")) == head) return;
    if (one.ends_with("." + key)) meant += (meant.empty() ? "" : " or ") + one;
  }
  // Where none ends so the reader says which keys there are.
  if (!meant.empty())
    throw InputError(
        fmt::format("{} {}: there is no key {}; did you mean {}?", flag, key, key, meant));
}

}  // namespace tidegate
