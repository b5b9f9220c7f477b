#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.hpp"

/// Numbers as a report says them. Quantities with units are said by models/base/units.hpp.
namespace tidegate {

/// Four significant digits, no exponent above 1e-4: "0.5", "12.35", "16850".
std::string number_text(double v);
/// "48.16 billion", "7.2 million", "16850".
std::string count_text(double v);
/// "97 %", and below ten one digit more: "3.2 %"; what would round to nothing is "<0.1 %".
std::string percent_text(double fraction);
std::string bytes_text(std::int64_t bytes);
/// The part of the whole; 0 when the whole is nothing.
double share_of(Seconds part, Seconds whole);

/// "gpu0", or "gpu0 (4 alike)" where it stands for four.
std::string alike_text(const std::string& name, std::int32_t count);

/// A bar of at most `columns` columns, in eighths of one.
std::string bar(double fraction, std::size_t columns);

/// A word that a POSIX shell reads as one: quoted where it must be.
std::string shell_word(const std::string& text);

/// The parts that are not empty, with `between` between them.
std::string join(const std::vector<std::string>& parts, const char* between);

}  // namespace tidegate
