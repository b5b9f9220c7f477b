#pragma once

#include <cstddef>
#include <span>
#include <string>

/// Small plots in a line of text.
namespace tidegate::calib {

enum class Glyphs { utf8, ascii };
/// utf8 when LC_ALL, LC_CTYPE or LANG (the first that is set) says so.
Glyphs glyphs_of_locale();

/// One character per value, eight heights between `low` and `high`; more values than `width` are
/// taken in equal parts, of which the value farthest from the middle is shown. '?' for what is not
/// a number. Of equal low and high, all in the middle.
std::string sparkline(std::span<const double> values, double low, double high, Glyphs glyphs,
                      std::size_t width = 64);

}  // namespace tidegate::calib
