#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

/// docs/questions.md against the program: every command of a `sh` block is run and succeeds, and
/// every line of the `text` block behind it stands in what it prints, in that order ("…" stands for
/// lines left out). TIDEGATE_BLESS=1 writes today's lines into the page; read the diff.

using namespace tidegate;

namespace {

const std::string page = TIDEGATE_SOURCE_DIR "/docs/questions.md";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string squeezed(const std::string& line) {
  const std::string text = std::regex_replace(line, std::regex(" +"), " ");
  return text.starts_with(' ') ? text.substr(1) : text;
}

// The line without its figures: what stays when numbers move.
std::string skeleton(const std::string& line) {
  const std::string bare = std::regex_replace(
      line, std::regex("[0-9.]+( [A-Za-z]?i?B\\b| m?s\\b| us\\b)?|[▏▎▍▌▋▊▉█]"), "#");
  return squeezed(std::regex_replace(bare, std::regex("#+"), "#"));
}

struct Answer {
  std::vector<std::string> commands;
  std::size_t first = 0, last = 0;  // lines of the page that quote the last command
};

std::vector<Answer> answers_of(const std::vector<std::string>& lines) {
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_shell = lines[i] == "```sh", is_quote = lines[i] == "```text";
    if (is_shell) answers.emplace_back();
    if (!is_shell && !is_quote) continue;
    const std::size_t first = ++i;
    while (lines[i] != "```") {
      if (is_shell) answers.back().commands.push_back(lines[i]);
      ++i;
    }
    if (is_quote) answers.back().first = first, answers.back().last = i;
  }
  return answers;
}

// In a folder of its own, from which the shipped configurations are seen.
std::string output_of(const std::string& command) {
  const test::TemporaryFolder folder;
  const std::string program = TIDEGATE_EXECUTABLE;
  const std::string path = program.substr(0, program.rfind('/'));
  const test::Finished run =
      test::run({"/bin/bash", "-c",
                 "cd '" + folder.path().string() +
                     "' && ln -s '" TIDEGATE_SOURCE_DIR "/scenarios' '" TIDEGATE_SOURCE_DIR
                     "/tests' . && PATH='" +
                     path + "':$PATH && " + command});
  INFO(command << "\n" << run.err);
  CHECK(run.code == 0);
  return run.out;
}

}  // namespace

TEST_CASE("the answers of docs/questions.md are what the program prints", "[docs]") {
  std::vector<std::string> lines;
  {
    std::ifstream file(page);
    std::stringstream text;
    text << file.rdbuf();
    lines = lines_of(text.str());
  }
  const bool is_blessing = std::getenv("TIDEGATE_BLESS") != nullptr;
  std::size_t quoted = 0;
  const std::vector<Answer> answers = answers_of(lines);
  CHECK(answers.size() >= 15);
  for (const Answer& answer : answers) {
    std::string output;
    for (const std::string& command : answer.commands) output = output_of(command);
    const std::vector<std::string> printed = lines_of(output);
    std::size_t at = 0;
    for (std::size_t i = answer.first; i < answer.last; ++i) {
      if (lines[i] == "…" || lines[i].empty()) continue;
      ++quoted;
      std::size_t found = at;
      const auto is_it = [&](const std::string& line) {
        return is_blessing ? skeleton(line) == skeleton(lines[i])
                           : squeezed(line) == squeezed(lines[i]);
      };
      while (found < printed.size() && !is_it(printed[found])) ++found;
      INFO(answer.commands.back() << "\n" << lines[i]);
      CHECK(found < printed.size());
      if (found == printed.size()) continue;
      if (is_blessing) lines[i] = printed[found];
      at = found + 1;
    }
  }
  CHECK(quoted > 60);
  if (!is_blessing) return;
  std::ofstream file(page);
  for (const std::string& line : lines) file << line << "\n";
}

TEST_CASE("fifteen questions are asked", "[docs]") {
  std::ifstream file(page);
  int questions = 0;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_search(line, std::regex("^## [0-9]+\\. .*\\?$"))) ++questions;
  }
  CHECK(questions == 15);
}
