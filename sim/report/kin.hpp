#pragma once

#include <string>
#include <vector>

#include "sim/report/report.hpp"

/// The resources of a node in the words of a reader who does not care which GPU it was.
///
/// Resources whose names differ only in numbers (gpu0, gpu1, …) are kin. The critical path hops
/// between equal ranks, so that exposed time is spread over kin by chance; together they show what
/// the run waits for. Kin are always told together; fractions that differ by more than `alike` are
/// told as a range, because the difference is news.
namespace tidegate {

constexpr double alike = 0.05;

struct Range {
  double least = 0, most = 0;
};

struct Kin {
  std::string name;  ///< "gpu* (8)", or the resource's own name
  Range busy_fraction, work_fraction;
  Seconds exposed;                   ///< sum
  Bytes bytes;                       ///< sum
  bool only_carries = false;         ///< of all of them
  std::vector<std::size_t> members;  ///< indices into the report's resources
};

/// "52 %", the mean of the ends, or "10 to 90 %" when they are not alike.
std::string percent_text(const Range& range);

/// Most exposed first, then busiest; those that nothing uses are left out.
std::vector<Kin> kin_of(const std::vector<Report::Resource>& resources);

}  // namespace tidegate
