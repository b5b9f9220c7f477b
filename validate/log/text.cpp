#include <algorithm>

#include <fmt/core.h>

#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "validate/log/comparison.hpp"

namespace tidegate {
namespace {

std::string value_text(const std::string& unit, double value) {
  if (unit == "s") return to_text(Seconds(value));
  if (unit == "B") return to_text(Bytes(value));
  return unit == "1/s" ? number_text(value) + " /s" : number_text(value);
}

// Width of the middle half, over the median.
std::string spread_text(const Measured& m) {
  return m.values < 2 || m.median <= 0 ? "" : percent_text((m.high - m.low) / m.median);
}

std::string rows_text(const LogComparison& c) {
  Table table{.header = {"", "predicted", "measured", "spread", "error"}, .rows = {}, .align = {}};
  std::vector<std::string> notes;
  for (const LogRow& row : c.rows) {
    std::string name = row.name;
    if (!row.note.empty()) {
      notes.push_back(row.note);
      name += fmt::format(" [{}]", notes.size());
    }
    table.rows.push_back({name, value_text(row.unit, row.predicted),
                          value_text(row.unit, row.shown()),
                          row.unit == "B" ? "" : spread_text(row.measured),
                          row.error() ? fmt::format("{:+.1f} %", 100 * *row.error()) : "-"});
  }
  std::string text = to_text(table);
  for (std::size_t i = 0; i < notes.size(); ++i)
    text += fmt::format("[{}] {}\n", i + 1, wrap(notes[i], 76, 4));
  return text;
}

std::string head_text(const LogComparison& c) {
  std::string text = fmt::format("{}: {}", c.file, join(c.writers, " and "));
  if (c.is_run_average) {
    text += ", one mean over the whole run";
  } else if (c.iterations > 0) {
    text += fmt::format(", {} iteration{} of rank {}", c.iterations, c.iterations == 1 ? "" : "s",
                        c.rank);
    if (c.ranks > 1) text += fmt::format(", the slowest of {}", c.ranks);
    text += fmt::format("; the first {} left out", c.skipped);
  }
  return text + "\n" + wrap(fmt::format("Predicted: {} on {}", c.scenario, c.profile), 80, 2) +
         "\n\n";
}

std::string mismatches_text(const LogComparison& c, std::size_t width) {
  std::string text;
  for (const LogMismatch& m : c.mismatches) {
    const std::string from = m.where.line > 0 ? to_text(m.where) : "computed from its times";
    text += "  - " +
            wrap(fmt::format("{}: {} in the log ({}), {} in the scenario; {}", m.what,
                             number_text(m.logged), from, number_text(m.scenario), m.how),
                 width - 4, 4) +
            "\n";
  }
  return text.empty() ? "" : "\nThe log is of another run than the scenario\n" + text;
}

std::string list_text(const char* title, const std::vector<std::string>& lines, std::size_t width) {
  std::string text;
  for (const std::string& line : lines) text += "  - " + wrap(line, width - 4, 4) + "\n";
  return text.empty() ? "" : fmt::format("\n{}\n{}", title, text);
}

std::string alone_text(const LogComparison& c, std::size_t width) {
  std::vector<std::string> lines;
  for (const LogOnly& o : c.only_logged)
    lines.push_back(fmt::format("{} {}: {}", o.name, to_text(Seconds(o.seconds.median)), o.why));
  return list_text("In the log only", lines, width);
}

std::string damage_text(const LogComparison& c) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, c.damaged.size()); ++i) {
    const Problem& p = c.damaged[i];
    text += fmt::format("  {}: {}: {}\n", to_text(p.where), p.key, p.text);
  }
  if (c.damaged.size() > most)
    text += fmt::format("  and {} more; --json lists all\n", c.damaged.size() - most);
  return text.empty() ? "" : "\nDamaged in the log, and left out\n" + text;
}

}  // namespace

std::string to_text(const LogComparison& c, std::size_t width) {
  std::string text = head_text(c) + rows_text(c) + mismatches_text(c, width);
  text += list_text("What differs", c.explanations, width) + alone_text(c, width);
  text += list_text("Predicted, not in the log", c.only_predicted, width);
  text += list_text("Notes", c.notes, width) + damage_text(c);
  if (c.next.empty()) return text;
  text += "\nNext\n";
  for (const std::string& command : c.next) text += "  " + command + "\n";
  return text;
}

}  // namespace tidegate
