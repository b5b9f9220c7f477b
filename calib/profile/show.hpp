#pragma once

#include <string>

#include "calib/profile/plots.hpp"

namespace tidegate::calib {

/// A node profile as a page of text: how it was measured, error floor, checks, values with
/// uncertainty and origin, fits with their errors and residuals as small plots, tables of what was
/// not fitted, canaries, what was not measured. Throws InputError.
std::string show_text(const std::string& path, Glyphs glyphs = glyphs_of_locale());

}  // namespace tidegate::calib
