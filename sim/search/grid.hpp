#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/explain.hpp"

/// What a grid of `--over` says: its table, and where one choice overtakes another.
namespace tidegate {

/// Where one choice is the fastest that fits, in a grid over a key of numbers and another key.
struct Crossing {
  struct Range {
    std::string from, to;              ///< values of `key`, next to each other in their order
    std::vector<std::string> fastest;  ///< values of `over` not to be told apart; empty: none fits
    std::string next;                  ///< the fastest of the rest, or "the next" where it changes
    double least = 0, most = 0;        ///< how much longer it takes for the same work, relative
  };
  std::string key, over;
  std::vector<Range> ranges;
};
/// Nothing for grids of another shape, and where one choice is left. Numbers may have a unit, the
/// same in all values.
std::optional<Crossing> crossing_of(const TuneReport& report);

/// Tokens of an iteration differ between candidates, so that its time alone ranks nothing.
bool has_other_tokens(const Tuning& tuning);

/// Time for the same work over that of the best, less 1.
double slower_than_best(const Tuning& tuning, const Candidate& c);

/// The table, and what is fastest where.
std::string grid_text(const TuneReport& report);
/// How rows are compared.
std::string grid_note(const TuneReport& report, std::size_t width);

}  // namespace tidegate
