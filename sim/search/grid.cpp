#include "sim/search/grid.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "sim/search/pool.hpp"

namespace tidegate {
namespace {

constexpr std::size_t most_rows = 200;

// What the fullest GPU, or the host, needs at its peak.
std::string need_text(const Candidate& c, bool Need::* kind) {
  Bytes most;
  if (!c.trial) return "-";
  for (const Need& need : c.trial->needs) {
    if (need.*kind) most = std::max(most, need.bytes);
  }
  return to_text(most);
}

std::vector<std::string> row_of(const Tuning& t, const Candidate& c) {
  std::vector<std::string> row;
  for (const auto& [key, value] : c.sets) row.push_back(value);
  row.push_back(c.trial ? to_text(c.trial->iteration_time) : "-");
  row.push_back(c.trial ? number_text(c.trial->tokens_per_second) : "-");
  std::string note = trouble_of(c);
  std::string change = "-";
  if (c.trial && t.best) {
    const double slower = slower_than_best(t, c);
    change = signed_percent(slower);
    if (c.picks == t.best->picks)
      note = "best";
    else if (note.empty() && slower < t.margin)
      note = "not to be told apart";
  }
  if (!c.trial && note.empty()) note = "not simulated";
  row.insert(row.end(), {change, need_text(c, &Need::is_gpu), need_text(c, &Need::is_host), note});
  return row;
}

std::string longer_text(const Crossing::Range& r) {
  if (r.fastest.empty()) return "";
  if (r.next.empty()) return "no other fits";
  const std::string least = signed_percent(r.least), most = signed_percent(r.most);
  return fmt::format("{} {}", r.next, least == most ? least : least + " to " + most);
}

std::string crossing_text(const TuneReport& report) {
  const auto crossing = crossing_of(report);
  if (!crossing) return "";
  Table table{.header = {crossing->key, "fastest that fits", "time of the next"},
              .rows = {},
              .align = {Align::left, Align::left, Align::left}};
  for (const Crossing::Range& r : crossing->ranges) {
    table.rows.push_back({r.from == r.to ? r.from : r.from + " to " + r.to,
                          r.fastest.empty() ? "none fits" : join(r.fastest, " or "),
                          longer_text(r)});
  }
  return "\n" + to_text(table);
}

}  // namespace

double slower_than_best(const Tuning& t, const Candidate& c) {
  return c.trial->pace() / t.best->trial->pace() - 1;
}

bool has_other_tokens(const Tuning& t) {
  constexpr double rounding = 1e-9;
  double least = INFINITY, most = 0;
  for (const Candidate& c : t.all) {
    if (!c.trial) continue;
    const double tokens = c.trial->tokens_per_second * c.trial->iteration_time.value();
    least = std::min(least, tokens), most = std::max(most, tokens);
  }
  return most > least * (1 + rounding);
}

std::string grid_text(const TuneReport& r) {
  const Tuning& t = r.tuning;
  Table table{.header = r.axes, .rows = {}, .align = {}};
  const std::vector<std::string> columns = {"iteration", "tokens/s", "to the best",
                                            "GPU",       "host",     ""};
  table.header.insert(table.header.end(), columns.begin(), columns.end());
  table.align.assign(r.axes.size(), Align::left);
  table.align.insert(table.align.end(), columns.size() - 1, Align::right);
  table.align.push_back(Align::left);
  for (std::size_t i = 0; i < std::min(most_rows, t.all.size()); ++i)
    table.rows.push_back(row_of(t, t.all[i]));
  std::string text = to_text(table);
  if (t.all.size() > most_rows)
    text += fmt::format("{} more: see --csv or --json\n", t.all.size() - most_rows);
  return text + crossing_text(r);
}

std::string grid_note(const TuneReport& r, std::size_t width) {
  std::string text = fmt::format(
      "Times that differ by less than {:g} % are not told apart. GPU and host are what the fullest "
      "GPU reserves and what the host needs, at the peak.",
      100 * r.tuning.margin);
  if (has_other_tokens(r.tuning))
    text +=
        " Rows differ in tokens of an iteration: the best has most tokens/s, and times are "
        "compared "
        "for the same tokens.";
  return wrap(text, width) + "\n";
}

}  // namespace tidegate
