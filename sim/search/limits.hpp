#pragma once

#include <string>
#include <vector>

#include "sim/search/tune.hpp"

namespace tidegate {

/// "gpu=70 GiB", "host=400 GiB", "nvme=2 TB" (a storage path), "life=3" (years of every drive),
/// "changes=2". Throws InputError for other names, with those of the machine.
Limits read_limits(const std::vector<std::string>& texts, const Machine& machine);

/// Lowers capacities to what is allowed.
void limit(std::vector<Need>& needs, const Limits& limits);
/// The limit that a trial exceeds, with its figure; empty: none.
std::string violated(const Trial& trial, const Limits& limits);

}  // namespace tidegate
