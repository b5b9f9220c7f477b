#include "sim/keys/keys.hpp"
#include "sim/keys/pages.hpp"
#include "sim/keys/words.hpp"

namespace tidegate {

const KeyTable& scenario_keys() {
  static const KeyTable table = read_keys(scenario_page(), "docs/scenario.md");
  return table;
}

const KeyTable& profile_keys() {
  static const KeyTable table = read_keys(profiles_page(), "docs/profiles.md");
  return table;
}

const std::vector<Word>& report_words() {
  static const std::vector<Word> words = [] {
    std::vector<Word> all = read_words(words_page(), "docs/words.md");
    for (Word& word : read_words(report_json_page(), "docs/report_json.md"))
      all.push_back(std::move(word));
    return all;
  }();
  return words;
}

}  // namespace tidegate
