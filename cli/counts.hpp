#pragma once

#include <cstdint>

#include <CLI/CLI.hpp>

namespace tidegate {

/// For Option::transform: a whole number within these bounds, also written 1e3 as in a scenario.
CLI::Validator count_in(std::int64_t least, std::int64_t most);

}  // namespace tidegate
