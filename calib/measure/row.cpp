#include <fmt/core.h>

#include "calib/measure/bench.hpp"

namespace tidegate::calib {

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::bytes_per_second:
      return "B/s";
    case Unit::flops_per_second:
      return "FLOP/s";
    case Unit::per_second:
      return "1/s";
    case Unit::seconds:
      return "s";
    case Unit::fraction:
      return "1";
  }
  return "";
}

std::string Row::id() const {
  std::string text = quantity;
  for (const auto& [name, value] : at) text += fmt::format("/{}={}", name, value);
  return text;
}

}  // namespace tidegate::calib
