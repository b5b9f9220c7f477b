#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/evaluate.hpp"

/// What a search says to a file or to another process: JSON in one line, numbers exact to the bit.
/// Reading throws std::runtime_error on anything else.
namespace tidegate {

/// A finished simulation: a line of a results file.
struct Result {
  std::vector<std::string> sets;  ///< "key=value"
  Trial trial;
};
std::vector<std::string> texts_of(const std::vector<Override>& sets);
std::string encode(const std::vector<Override>& sets, const Trial& trial);
Result decode_result(const std::string& line);

/// Candidates to look at, by their numbers in a batch.
struct Question {
  struct Item {
    std::uint32_t number = 0;
    std::vector<Override> sets;
  };
  enum class Kind : std::uint8_t { screen, simulate };
  Kind kind = Kind::screen;
  std::uint32_t batch = 0;
  std::vector<Item> items;
};
std::string encode(const Question& question);
Question decode_question(const std::string& line);

/// What was asked, or the error that it ended with.
struct Answer {
  std::uint32_t batch = 0, number = 0;
  std::optional<Screening> screening;
  std::optional<Trial> trial;
  std::exception_ptr error;
};
std::string encode(const std::vector<Answer>& answers);
std::vector<Answer> decode_answers(const std::string& line);

/// How a process reports to rank 0: what it has read, or why it could not.
struct Hello {
  std::uint32_t threads = 0;
  std::string fingerprint;
  std::exception_ptr error;
};
std::string encode(const Hello& hello);
Hello decode_hello(const std::string& line);

}  // namespace tidegate
