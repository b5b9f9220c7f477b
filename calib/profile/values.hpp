#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

/// The cited values of any node profile of hw_profiles, complete or not, as a list.
namespace tidegate::calib {

struct ProfileValue {
  std::string key;                               ///< dotted: "paths.nvme.read"
  std::string text;                              ///< as written
  std::optional<double> number;                  ///< in base units; none of flags and curves
  std::vector<std::pair<double, double>> curve;  ///< size and efficiency
  double uncertainty = 0;                        ///< one standard deviation, relative; 0: not told
  std::string origin;                            ///< source, or why it is assumed
  bool is_assumed = false;
};
struct ProfileValues {
  std::string name, description;
  std::vector<ProfileValue> values;  ///< in the order of the file
};
/// Reads values with their components. Throws InputError, with the place, for what is not a profile
/// of the kind node, a component that is missing, and an uncertainty that is none; whether the
/// values make a machine is load_machine's business.
ProfileValues values_of(const std::string& path);

}  // namespace tidegate::calib
