#include "models/base/error.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>

#include <fmt/core.h>

namespace tidegate {
namespace {

// The source line and a caret under the column, or nothing when the file cannot be read again.
std::string excerpt(const Where& where) {
  if (where.line <= 0) return "";
  std::ifstream file(where.file);
  std::string line;
  for (int i = 0; i < where.line; ++i) {
    if (!std::getline(file, line)) return "";
  }
  constexpr std::size_t widest = 160;
  if (line.size() > widest) return "";
  const auto indent = static_cast<std::size_t>(std::max(0, where.column - 1));
  return "\n    " + line + "\n    " + std::string(std::min(indent, line.size()), ' ') + "^";
}

std::string joined(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& p : problems) {
    if (!text.empty()) text += "\n";
    const std::string place = to_text(p.where);
    if (!place.empty()) text += place + ": ";
    // "--set KEY" has said the key.
    const bool is_said = place.ends_with(" " + p.key);
    if (!p.key.empty() && !is_said) text += p.key + ": ";
    text += p.text + excerpt(p.where);
  }
  return text;
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_text(const Where& where) {
  if (where.file.empty()) return "";
  if (where.line <= 0) return where.file;
  return fmt::format("{}:{}:{}", where.file, where.line, where.column);
}

InputError::InputError(std::vector<Problem> problems)
    : std::runtime_error(joined(problems)), problems_(std::move(problems)) {}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < least) least = distance, best = candidate;
  }
  return best;
}

}  // namespace tidegate
