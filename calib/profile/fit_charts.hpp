#pragma once

#include "calib/measure/protocol.hpp"
#include "models/calibration.hpp"
#include "sim/page/page.hpp"

namespace tidegate::calib {

/// Measured points with the fitted curve on logarithmic axes, and log(model/measured) beneath.
/// Points are the blocks of `samples`, where they are given, else the medians of the profile's
/// table. Along x the form's last coordinate, a colour for each of the others. Nothing where the
/// profile has no table of the fit.
page::Html fit_charts(const Calibration::Fit& fit, const Calibration& c,
                      const Measurements* samples);

/// Canaries over the time of the run, each over its own median. Nothing without samples.
page::Html canary_chart(const Measurements* samples);

/// "1 MiB" of block and bytes, else the number.
std::string coordinate_text(const std::string& name, double value);

}  // namespace tidegate::calib
