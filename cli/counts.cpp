#include "cli/counts.hpp"

#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

namespace tidegate {

CLI::Validator count_in(std::int64_t least, std::int64_t most) {
  const auto read = [least, most](std::string& text) -> std::string {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != 0 || !std::isfinite(value) || value != std::floor(value))
      return fmt::format("is '{}'; a whole number is expected", text);
    if (value < static_cast<double>(least) || value > static_cast<double>(most))
      return fmt::format("is {}; it must lie between {} and {}", text, least, most);
    text = fmt::format("{:.0f}", value);
    return "";
  };
  return CLI::Validator(read, fmt::format("{} to {}", least, most));
}

}  // namespace tidegate
