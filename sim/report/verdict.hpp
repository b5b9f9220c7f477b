#pragma once

#include <string>

#include "sim/report/report.hpp"

namespace tidegate {

/// The first lines of a report: does it fit (and if not: where, when, who holds the bytes, what
/// would help), how fast, what holds it back, what no schedule can beat. Ends with a newline.
std::string verdict_text(const Report& report, std::size_t width);

}  // namespace tidegate
