#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// A table of a markdown page: the nearest heading above it, and its cells without the blanks
/// around them.
struct MarkdownTable {
  struct Row {
    int line = 0;
    std::vector<std::string> cells;
  };
  std::string heading;
  int heading_line = 0;
  std::vector<std::string> header;
  std::vector<Row> rows;
};

/// All tables of a page. Throws InputError with the place when a row has more or fewer cells than
/// its header, or a table lacks the rule below it.
std::vector<MarkdownTable> markdown_tables(std::string_view page, const std::string& name);

/// The words in backticks of a text, in order.
std::vector<std::string> words_in_backticks(std::string_view text);

/// The text as a terminal shows it: without backticks and links' addresses.
std::string without_markup(std::string_view text);

}  // namespace tidegate
