#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidegate {

/// A word of reports and what it means: a row of docs/words.md (`| word | meaning |`) or a field
/// of docs/report_json.md (`| key | unit | meaning |`).
struct Word {
  std::vector<std::string> words;  ///< spellings: "exposed"; "gpu*.h2d"
  std::string unit, meaning;
  std::string page;
  int line = 0;
};

/// The rows of a page, in order. Throws InputError with its line when a row names nothing.
std::vector<Word> read_words(std::string_view page, const std::string& name);

/// Of the pages that are built in.
const std::vector<Word>& report_words();

/// Whether a row explains this label of a report: "gpu0.h2d" and "gpu* (4 alike)" are "gpu*.h2d",
/// "gpu*".
bool explains(const Word& row, std::string_view label);

}  // namespace tidegate
