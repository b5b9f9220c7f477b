#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

/// Three kinds of failure, by who can mend it:
///   InputError    the person's file or flag           exit code 2
///   MachineError  driver, device, operating system    exit code 3
///   logic_error   our own bug, through ensure()       exit code 4
/// "Does not fit in memory" is none of them: it is an answer in a report.
namespace tidegate {

/// A place in an input file; line and column count from 1, 0 means unknown.
struct Where {
  std::string file;
  int line = 0;
  int column = 0;
};

/// "file:line:column" with the parts that are known.
std::string to_text(const Where& where);

/// One fault of an input: what is wrong and what would be right.
struct Problem {
  Where where;
  std::string key;   ///< dotted path of the value, empty when the whole file is meant
  std::string text;  ///< "what is wrong; what would be right"
};

/// All problems found in the person's input, in the order of their places.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Problem> problems);
  InputError(Where where, std::string key, std::string text)
      : InputError(std::vector<Problem>{{std::move(where), std::move(key), std::move(text)}}) {}
  /// A fault of a command line: no place.
  explicit InputError(std::string text) : InputError({}, "", std::move(text)) {}

  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// A call to the operating system or a device failed.
class MachineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws std::logic_error with file and line when one of our own invariants does not hold.
inline void ensure(bool holds, const char* what,
                   const std::source_location& at = std::source_location::current()) {
  if (holds) return;
  throw std::logic_error(std::string(at.file_name()) + ":" + std::to_string(at.line()) + ": " +
                         what);
}

/// The candidate closest to `word` by edit distance, or an empty string when none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace tidegate
