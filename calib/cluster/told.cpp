#include "calib/cluster/told.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

namespace tidegate::calib {

std::string to_line(const Moved& moved, const std::string& failure) {
  return fmt::format("{:.17g} {:.17g} {:.17g} {} {}", moved.read, moved.written, moved.seconds,
                     moved.is_verified ? 1 : 0, failure);
}

Told sum_of(const std::vector<std::string>& lines) {
  Told told;
  for (const std::string& line : lines) {
    char* rest = nullptr;
    Moved m;
    m.read = std::strtod(line.c_str(), &rest);
    m.written = std::strtod(rest, &rest);
    m.seconds = std::strtod(rest, &rest);
    m.is_verified = std::strtod(rest, &rest) > 0;
    told.all.read += m.read, told.all.written += m.written;
    told.all.seconds = std::max(told.all.seconds, m.seconds);
    told.all.is_verified = told.all.is_verified && m.is_verified;
    told.read_rates.push_back(m.seconds > 0 ? m.read / m.seconds : 0);
    told.written_rates.push_back(m.seconds > 0 ? m.written / m.seconds : 0);
    if (*rest == ' ') ++rest;
    if (told.failure.empty()) told.failure = rest;
  }
  return told;
}

}  // namespace tidegate::calib
