#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// What differs between two profiles beyond their noise.
namespace tidegate::calib {

struct Diff {
  /// A value with an uncertainty in both profiles. t = log(after/before) / sqrt(ua² + ub²), ua and
  /// ub the relative standard deviations; a curve is its most significant common size, times their
  /// number. p is two-sided, by Student's distribution with the freedom that told both deviations
  /// (calib/fit/noise.hpp; values that calib did not measure: the normal one), corrected for the
  /// number of values by Holm (1979).
  struct Change {
    std::string key, before, after;
    double ratio = 1;        ///< after / before
    double uncertainty = 0;  ///< of the ratio, one standard deviation
    double freedom = 0;      ///< degrees of freedom that tell it; infinity: known
    double p = 1;
    bool is_beyond_noise() const { return p < 0.05; }
  };
  /// Differs, but noise is not told in both.
  struct Untested {
    std::string key, before, after;
  };
  std::string before, after;    ///< names of the profiles
  std::vector<Change> changes;  ///< smallest p first
  std::vector<Untested> untested;
  std::size_t equal = 0;                             ///< values without noise that do not differ
  std::vector<std::string> only_before, only_after;  ///< keys
  std::size_t beyond_noise() const;
};
/// Of two node profiles, by their paths. Throws InputError.
Diff diff(const std::string& before, const std::string& after);

std::string to_text(const Diff& diff);
std::string to_json(const Diff& diff);

}  // namespace tidegate::calib
