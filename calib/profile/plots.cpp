#include "calib/profile/plots.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace tidegate::calib {
namespace {

constexpr std::array<const char*, 8> bars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<const char*, 8> letters = {"_", ".", ",", "-", "=", "+", "*", "#"};

const char* glyph(double value, double low, double high, Glyphs glyphs) {
  if (!std::isfinite(value)) return "?";
  const double part = high > low ? (value - low) / (high - low) : 0.5;
  const auto level = static_cast<std::size_t>(std::clamp(8 * part, 0.0, 7.0));
  return (glyphs == Glyphs::utf8 ? bars : letters).at(level);
}

}  // namespace

Glyphs glyphs_of_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text(value);
    const bool is_utf8 = text.ends_with("UTF-8") || text.ends_with("utf8") ||
                         text.ends_with("UTF8") || text.ends_with("utf-8");
    return is_utf8 ? Glyphs::utf8 : Glyphs::ascii;
  }
  return Glyphs::ascii;
}

std::string sparkline(std::span<const double> values, double low, double high, Glyphs glyphs,
                      std::size_t width) {
  const std::size_t columns = std::min(values.size(), width);
  const double middle = (low + high) / 2;
  std::string text;
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t from = c * values.size() / columns, to = (c + 1) * values.size() / columns;
    const auto part = values.subspan(from, to - from);
    text += glyph(
        *std::ranges::max_element(part, {}, [middle](double v) { return std::abs(v - middle); }),
        low, high, glyphs);
  }
  return text;
}

}  // namespace tidegate::calib
