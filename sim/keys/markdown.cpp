#include "sim/keys/markdown.hpp"

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(' ');
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(' ') - from + 1);
}

// "| a | b |" as a and b.
std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  line = trimmed(line);
  line.remove_prefix(1);
  while (!line.empty()) {
    const std::size_t bar = line.find('|');
    cells.emplace_back(trimmed(line.substr(0, bar)));
    if (bar == std::string_view::npos) break;
    line.remove_prefix(bar + 1);
  }
  return cells;
}

bool is_rule(const std::vector<std::string>& cells) {
  for (const std::string& cell : cells) {
    if (cell.empty() || cell.find_first_not_of("-:") != std::string::npos) return false;
  }
  return true;
}

}  // namespace

std::vector<MarkdownTable> markdown_tables(std::string_view page, const std::string& name) {
  std::vector<MarkdownTable> tables;
  std::string heading;
  int line_number = 0, heading_line = 0;
  bool is_inside = false, is_code = false;
  while (!page.empty()) {
    ++line_number;
    const std::size_t end = page.find('\n');
    const std::string_view line = page.substr(0, end);
    page.remove_prefix(end == std::string_view::npos ? page.size() : end + 1);
    if (line.starts_with("```")) is_code = !is_code;
    const bool is_row = !is_code && line.starts_with('|');
    if (!is_code && line.starts_with('#')) {
      heading = trimmed(line.substr(line.find_first_not_of('#')));
      heading_line = line_number;
    }
    if (is_row && !is_inside) tables.push_back({heading, heading_line, cells_of(line), {}});
    if (is_row && is_inside) tables.back().rows.push_back({line_number, cells_of(line)});
    is_inside = is_row;
  }
  for (MarkdownTable& table : tables) {
    if (table.rows.empty() || !is_rule(table.rows.front().cells))
      throw InputError({name, table.heading_line, 1}, table.heading,
                       "has a table without a rule | --- | below its first line");
    table.rows.erase(table.rows.begin());
    for (const MarkdownTable::Row& row : table.rows) {
      if (row.cells.size() == table.header.size()) continue;
      throw InputError({name, row.line, 1}, row.cells.front(),
                       fmt::format("has {} cells; its table has {} columns", row.cells.size(),
                                   table.header.size()));
    }
  }
  return tables;
}

std::vector<std::string> words_in_backticks(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t from = text.find('`');
    const std::size_t to = from == text.npos ? text.npos : text.find('`', from + 1);
    if (to == std::string_view::npos) return words;
    words.emplace_back(text.substr(from + 1, to - from - 1));
    text.remove_prefix(to + 1);
  }
}

std::string without_markup(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`') continue;
    if (text[i] == '[' && text.find("](", i) != text.npos && text.find(')', i) != text.npos) {
      const std::size_t middle = text.find("](", i), end = text.find(')', middle);
      plain += text.substr(i + 1, middle - i - 1);
      i = end;
      continue;
    }
    plain += text[i];
  }
  return plain;
}

}  // namespace tidegate
