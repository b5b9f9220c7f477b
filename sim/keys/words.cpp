#include "sim/keys/words.hpp"

#include <algorithm>
#include <cctype>

#include "models/base/error.hpp"
#include "sim/keys/markdown.hpp"

namespace tidegate {
namespace {

std::size_t column(const MarkdownTable& table, std::string_view name) {
  const auto at = std::ranges::find(table.header, name);
  return static_cast<std::size_t>(at - table.header.begin());
}

// "gpu3.h2d" as "gpu*.h2d": digits behind a letter are numbers of parts, and so is a star.
std::string pattern_of(std::string_view label) {
  std::string text;
  for (std::size_t i = 0; i < label.size(); ++i) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(label[i])) != 0;
    const bool is_number =
        is_digit && (label.starts_with("gpu") || label.starts_with("numa")) && i < label.find('.');
    if (!is_number) text += label[i];
    if (is_number && !text.ends_with('*')) text += '*';
  }
  // "gpu0 (4 alike)" is one of those four.
  return text.substr(0, text.find(" ("));
}

}  // namespace

std::vector<Word> read_words(std::string_view page, const std::string& name) {
  std::vector<Word> all;
  for (const MarkdownTable& table : markdown_tables(page, name)) {
    const std::string& first = table.header.front();
    const std::size_t unit = column(table, "unit"), meaning = column(table, "meaning");
    if ((first != "word" && first != "key") || meaning == table.header.size()) continue;
    for (const MarkdownTable::Row& row : table.rows) {
      Word word{.words = words_in_backticks(row.cells.front()),
                .meaning = row.cells[meaning],
                .page = name,
                .line = row.line};
      if (unit < row.cells.size()) word.unit = row.cells[unit];
      if (word.words.empty() || word.meaning.empty())
        throw InputError({name, row.line, 1}, row.cells.front(),
                         "names nothing; write the word in backticks and its meaning");
      all.push_back(std::move(word));
    }
  }
  return all;
}

bool explains(const Word& row, std::string_view label) {
  const std::string pattern = pattern_of(label);
  return std::ranges::any_of(
      row.words, [&](const std::string& word) { return word == label || word == pattern; });
}

}  // namespace tidegate
