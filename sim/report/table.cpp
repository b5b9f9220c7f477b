#include "sim/report/table.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tidegate {
namespace {

struct Range {
  char32_t first, last;
};
// Unicode 15 blocks, coarse: combining marks, joiners and variation selectors; wide scripts, emoji.
constexpr std::array no_columns = {Range{0x300, 0x36f}, Range{0x1ab0, 0x1aff},
                                   Range{0x200b, 0x200f}, Range{0x20d0, 0x20ff},
                                   Range{0xfe00, 0xfe0f}};
constexpr std::array two_columns = {
    Range{0x1100, 0x115f},   Range{0x2e80, 0x303e},  Range{0x3041, 0xa4cf}, Range{0xac00, 0xd7a3},
    Range{0xf900, 0xfaff},   Range{0xfe30, 0xfe6f},  Range{0xff00, 0xff60}, Range{0xffe0, 0xffe6},
    Range{0x1f300, 0x1faff}, Range{0x20000, 0x3fffd}};

template <std::size_t N>
bool is_in(char32_t c, const std::array<Range, N>& ranges) {
  return std::ranges::any_of(ranges, [c](Range r) { return r.first <= c && c <= r.last; });
}

// Takes one character off the front; a malformed byte is a character of its own.
char32_t take_character(std::string_view& text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  bool is_whole = length <= text.size();
  char32_t c = length == 1 ? lead : lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; is_whole && i < length; ++i) {
    is_whole = (byte(i) & 0xc0) == 0x80;
    c = c << 6 | (byte(i) & 0x3fu);
  }
  text.remove_prefix(is_whole ? length : 1);
  return is_whole ? c : lead;
}

Align align_of(const Table& table, std::size_t column) {
  if (column < table.align.size()) return table.align[column];
  return column == 0 ? Align::left : Align::right;
}

std::vector<std::size_t> widths_of(const Table& table) {
  std::vector<std::size_t> widths;
  const auto widen = [&widths](const std::vector<std::string>& row) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], columns_of(row[c]));
  };
  widen(table.header);
  for (const auto& row : table.rows) widen(row);
  return widths;
}

std::string line_of(const Table& table, const std::vector<std::string>& row,
                    const std::vector<std::size_t>& widths, std::size_t indent) {
  std::string line(indent, ' ');
  for (std::size_t c = 0; c < row.size(); ++c) {
    const std::string space(widths[c] - columns_of(row[c]), ' ');
    if (c > 0) line += "  ";
    line += align_of(table, c) == Align::left ? row[c] + space : space + row[c];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const char32_t c = take_character(text);
    columns += is_in(c, no_columns) ? 0u : is_in(c, two_columns) ? 2u : 1u;
  }
  return columns;
}

std::string to_text(const Table& table, std::size_t indent) {
  const std::vector<std::size_t> widths = widths_of(table);
  std::string text;
  if (!table.header.empty()) {
    std::size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
    for (const std::size_t w : widths) total += w;
    text += line_of(table, table.header, widths, indent) + std::string(indent, ' ');
    for (std::size_t i = 0; i < total; ++i) text += "─";
    text += '\n';
  }
  for (const auto& row : table.rows) text += line_of(table, row, widths, indent);
  return text;
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string wrapped;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    const std::size_t columns = columns_of(word);
    if (column > 0 && column + 1 + columns > width) {
      wrapped += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > 0) {
      wrapped += ' ', ++column;
    }
    wrapped += word;
    column += columns;
  }
  return wrapped;
}

}  // namespace tidegate
