#pragma once

#include <string>
#include <vector>

#include "sim/report/report.hpp"

/// The resources of a node in the words of a reader who does not care which GPU it was.
///
/// Resources whose names differ only in numbers (gpu0, gpu1, …) are kin. The critical path hops
/// between equal ranks, so that exposed time is spread over kin by chance; together they show what
/// the run waits for. Kin are told together when their busy fractions differ by at most `alike`;
/// else one by one, because the difference is the news.
namespace tidegate {

constexpr double alike = 0.05;

struct Kin {
  std::string name;                             ///< "gpu* (8)", or the resource's own name
  double busy_fraction = 0, work_fraction = 0;  ///< means
  Seconds exposed;                              ///< sum
  Bytes bytes;                                  ///< sum
};

/// Most exposed first, then busiest; those that nothing uses are left out.
std::vector<Kin> kin_of(const std::vector<Report::Resource>& resources);

}  // namespace tidegate
