#pragma once

#include "models/base/yaml.hpp"

namespace tidegate {

/// What a measured profile says about its own measuring (docs/profiles.md, section calibration).
struct Calibration {
  bool is_measured = false;  ///< false: the profile has no such section
  bool is_complete = true;
  /// What two runs of the same thing differ by on this machine, relative.
  double compute_floor = 0, io_floor = 0, overlapped_floor = 0;
};

/// Reads the section strictly: unknown keys and wrong kinds are problems at their place.
Calibration read_calibration(const yaml::Node& node);

/// "5 %" as 0.05; anything else is a problem.
double read_percent(const yaml::Node& node);

}  // namespace tidegate
