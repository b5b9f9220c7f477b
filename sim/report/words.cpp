#include "sim/report/words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/core.h>

namespace tidegate {

std::string number_text(double v) {
  if (std::abs(v) < 9999.5) return fmt::format("{:.4g}", v);
  const double step = std::pow(10, std::floor(std::log10(std::abs(v))) - 3);
  return fmt::format("{:.0f}", std::round(v / step) * step);
}

std::string count_text(double v) {
  if (v >= 0.99995e9) return number_text(v / 1e9) + " billion";
  if (v >= 0.99995e6) return number_text(v / 1e6) + " million";
  return number_text(v);
}

std::string percent_text(double fraction) {
  const double p = 100 * fraction;
  if (p > 0 && p < 0.05) return "<0.1 %";
  return p != 0 && std::abs(p) < 9.95 ? fmt::format("{:.1f} %", p) : fmt::format("{:.0f} %", p);
}

std::string bytes_text(std::int64_t bytes) { return to_text(Bytes(static_cast<double>(bytes))); }

double share_of(Seconds part, Seconds whole) { return whole > Seconds(0) ? part / whole : 0; }

std::string alike_text(const std::string& name, std::int32_t count) {
  return count > 1 ? fmt::format("{} ({} alike)", name, count) : name;
}

std::string bar(double fraction, std::size_t columns) {
  constexpr std::array eighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double length = 8 * static_cast<double>(columns) * std::clamp(fraction, 0.0, 1.0);
  const auto whole = static_cast<std::size_t>(std::lround(length));
  std::string text;
  for (std::size_t i = 0; i < whole / 8; ++i) text += "█";
  return text + eighths[whole % 8];
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+-@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string join(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

}  // namespace tidegate
