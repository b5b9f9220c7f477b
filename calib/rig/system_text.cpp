#include "calib/rig/system_text.hpp"

#include <fstream>
#include <sstream>

namespace tidegate::rig::detail {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::int64_t number_of(const std::string& path, std::int64_t otherwise) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : otherwise;
}

std::string chosen_of(const std::string& line) {
  const auto from = line.find('['), to = line.find(']');
  if (from == std::string::npos || to == std::string::npos || to < from) return line;
  return line.substr(from + 1, to - from - 1);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string value_of(const std::string& text, const std::string& key) {
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const auto from = line.find_first_not_of(":= \t", key.size());
    if (from == key.size()) continue;  // a longer key
    return from == std::string::npos ? "" : line.substr(from);
  }
  return "";
}

}  // namespace tidegate::rig::detail
