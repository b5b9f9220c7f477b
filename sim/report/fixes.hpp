#pragma once

#include <string>

#include "sim/report/report.hpp"

namespace tidegate {

/// The changes that make a run fit, each with the flags to give, what it costs and the peaks of the
/// pools that overflowed; or that none was found, the one that comes nearest, and the size of the
/// memory that it would need. Empty when nobody looked. Ends with a newline.
std::string fixes_text(const Report& report, std::size_t width);

}  // namespace tidegate
