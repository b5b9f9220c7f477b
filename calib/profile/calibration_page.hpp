#pragma once

#include <string>

namespace tidegate::calib {

/// A measured profile as one HTML page (sim/page/page.hpp): error floors, checks, values with
/// uncertainty and origin, each fit with its points, curve and residuals, tables, canaries, how it
/// was measured, what was not. The samples beside the profile are read where they are there and
/// still the profile's own; the page says if not. Throws InputError, also for a profile that calib
/// did not measure.
std::string show_html(const std::string& path);

}  // namespace tidegate::calib
