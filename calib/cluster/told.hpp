#pragma once

#include <string>
#include <vector>

/// What clients tell each other of a step that they took together. For calib/cluster alone.
namespace tidegate::calib {

struct Moved {
  double read = 0, written = 0, seconds = 0;  ///< bytes, and how long it took
  bool is_verified = true;
};
/// Of all clients: bytes in all, the time of the slowest; the failure of any.
struct Told {
  Moved all;
  std::string failure;
  std::vector<double> read_rates, written_rates;  ///< by rank, 0 where it did not take part
};

/// A line; `failure` has none of its own.
std::string to_line(const Moved& moved, const std::string& failure);
/// Of such lines, by rank.
Told sum_of(const std::vector<std::string>& lines);

}  // namespace tidegate::calib
