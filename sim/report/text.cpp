#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/report/assumptions.hpp"
#include "sim/report/kin.hpp"
#include "sim/report/report.hpp"
#include "sim/report/table.hpp"
#include "sim/report/verdict.hpp"
#include "sim/report/words.hpp"

namespace tidegate {
namespace {

constexpr std::size_t owners_shown = 4;
constexpr std::size_t tasks_shown = 6;
constexpr std::size_t assumptions_shown = 6;
constexpr std::size_t bar_columns = 24;

using Row = std::vector<std::string>;
// Rows that belong together, of `count` things that are alike; the first cell is their name.
struct Block {
  std::vector<Row> rows;
  std::int32_t count = 1;
};

bool is_alike_but_in_name(Block a, const Block& b) {
  a.rows.front().front() = b.rows.front().front();
  return a.rows == b.rows;
}

// Neighbours that differ in their name only (the GPUs of a node, mostly) become one.
void add_blocks(Table& table, const std::vector<Block>& blocks) {
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t next = i + 1;
    Block block = blocks[i];
    for (; next < blocks.size() && is_alike_but_in_name(blocks[next], blocks[i]); ++next) {
      block.count += blocks[next].count;
    }
    std::string& name = block.rows.front().front();
    name = alike_text(name, block.count);
    table.rows.insert(table.rows.end(), block.rows.begin(), block.rows.end());
    i = next;
  }
}

std::string table_text(const Table& table) { return table.rows.empty() ? "" : to_text(table); }

std::string title_text(const RunFacts& facts, std::size_t width) {
  const std::string title =
      join({facts.scenario, facts.policy, facts.profile, facts.revision}, " · ");
  return title.empty() ? "" : wrap(title, width) + "\n";
}

std::string range_text(const Report::Range& range) {
  const std::string from_profile =
      range.uncertain == 0
          ? "the profile states no uncertainty"
          : fmt::format("{} draws of {} uncertain values of the profile{} vary by {:.1f} %",
                        range.draws, range.uncertain,
                        range.silent > 0 ? fmt::format(" ({} state none)", range.silent) : "",
                        100 * range.profile_deviation);
  return fmt::format(
      "Nine in ten within {} to {}: {}; the models miss by {:.1f} % on published "
      "runs.",
      to_text(range.low), to_text(range.high), from_profile, 100 * range.model_deviation);
}

std::string phases_text(const Report& report, std::size_t width) {
  Table table{.header = {"Phase", "time", "share", ""},
              .align = {Align::left, Align::right, Align::right, Align::left}};
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (report.phases[p] == Seconds(0)) continue;
    const double part = share_of(report.phases[p], report.iteration_time);
    table.rows.push_back({name_of(static_cast<Phase>(p)), to_text(report.phases[p]),
                          percent_text(part), bar(part, bar_columns)});
  }
  table.rows.push_back({"iteration", to_text(report.iteration_time)});
  std::vector<std::string> notes;
  if (report.steady_iterations > 1) {
    notes.push_back(fmt::format("Mean of the last {} iterations.", report.steady_iterations));
  }
  if (report.range) notes.push_back(range_text(*report.range));
  if (report.iterations.size() > 1) {
    notes.push_back(fmt::format("The first took {}.", to_text(report.first_iteration_time)));
  }
  if (report.drain > Seconds(0)) {
    notes.push_back(
        fmt::format("After the last, work left behind drains for {}.", to_text(report.drain)));
  }
  const std::string note = join(notes, " ");
  return to_text(table) + (note.empty() ? "" : wrap(note, width) + "\n");
}

std::string used_text(Bytes part, Bytes capacity) {
  const bool is_bounded = capacity > Bytes(0) && std::isfinite(capacity.value());
  return is_bounded ? percent_text(part / capacity) : "";
}

// A run that ran out of memory asked for more than it ever got.
std::string reserved_text(const std::optional<Report::Allocator>& allocator) {
  if (!allocator) return "";
  return (allocator->out_of_memory ? "> " : "") + to_text(allocator->reserved_peak);
}

Block pool_block(const std::string& name, Bytes peak, const Report::Pool& pool,
                 const std::vector<Report::Owner>& owners) {
  const Bytes capacity = pool.capacity;
  const bool is_bounded = std::isfinite(capacity.value());
  Block block{.rows = {{name, to_text(peak), reserved_text(pool.allocator),
                        is_bounded ? to_text(capacity) : "unbounded", used_text(peak, capacity)}},
              .count = pool.count};
  // A single owner left over is shown too: "1 others" would be as long as its name.
  const std::size_t count = owners.size();
  const std::size_t shown = count <= owners_shown + 1 ? count : owners_shown;
  Bytes rest = peak;
  for (std::size_t o = 0; o < shown; ++o) {
    const Bytes bytes(static_cast<double>(owners[o].bytes));
    block.rows.push_back(
        {"  " + owners[o].name, to_text(bytes), "", "", used_text(bytes, capacity)});
    rest -= bytes;
  }
  if (count > shown) {
    block.rows.push_back({fmt::format("  {} others", count - shown), to_text(rest), "", "",
                          used_text(rest, capacity)});
  }
  return block;
}

// What the allocators did that costs time or says that the run is not over its growth.
std::string allocators_text(const Report& report, std::size_t width) {
  std::int64_t retries = 0;
  std::vector<std::string> growing;
  for (const Report::Pool& pool : report.pools) {
    if (!pool.allocator) continue;
    retries = std::max(retries, pool.allocator->retries);
    if (pool.allocator->grows) growing.push_back(pool.name);
  }
  std::vector<std::string> notes;
  if (retries > 0) {
    notes.push_back(fmt::format("The allocator flushed its cache {} time{}, each a pause.", retries,
                                retries == 1 ? "" : "s"));
  }
  if (!growing.empty()) {
    notes.push_back("Reserved still grows on " + join(growing, ", ") + ": run more iterations.");
  }
  const std::string note = join(notes, " ");
  return note.empty() ? "" : wrap(note, width) + "\n";
}

void add_pool(std::vector<Block>& blocks, const Report::Pool& pool) {
  if (pool.peak <= Bytes(0)) return;
  if (pool.peaks_at_startup()) {
    blocks.push_back(pool_block(pool.name + ", start-up", pool.startup_peak, pool, pool.owners));
    blocks.push_back(
        pool_block(pool.name + ", training", pool.training_peak, pool, pool.training_owners));
  } else {
    blocks.push_back(pool_block(pool.name, pool.peak, pool, pool.owners));
  }
}

std::string memory_text(const Report& report, std::size_t width) {
  Table table{.header = {"Memory", "peak", "reserved", "capacity", "used"}};
  std::vector<Block> blocks;
  for (const Report::Pool& pool : report.pools) add_pool(blocks, pool);
  add_blocks(table, blocks);
  return table_text(table) + allocators_text(report, width);
}

// People read a busy memory as a full one, so the columns say what they are.
constexpr const char* resource_columns =
    "busy: used by anything, however little; work: what that takes at full speed; exposed: what a "
    "faster one could shorten at most.";

std::string resources_text(const Report& report, std::size_t width) {
  Table table{.header = {"Resource", "busy", "work", "exposed", "", "bytes"}};
  const auto part = [&](Seconds time) {
    return percent_text(share_of(time, report.iteration_time));
  };
  for (const Kin& kin : kin_of(report.resources)) {
    table.rows.push_back({kin.name, percent_text(kin.busy_fraction),
                          percent_text(kin.work_fraction), to_text(kin.exposed), part(kin.exposed),
                          kin.only_carries && kin.bytes > Bytes(0) ? to_text(kin.bytes) : ""});
  }
  for (const auto& [name, time] : {std::pair("latency", report.latency), {"wait", report.wait}}) {
    if (time > Seconds(0)) table.rows.push_back({name, "", "", to_text(time), part(time)});
  }
  return table.rows.empty() ? "" : to_text(table) + wrap(resource_columns, width) + "\n";
}

std::string elasticities_text(const Report& report) {
  Table table{.header = {"If 1 % faster", "iteration"}};
  for (const auto& [name, value] : report.elasticities) {
    table.rows.push_back({name, fmt::format("{:.2f} % shorter", std::max(value, 0.0))});
  }
  return table_text(table);
}

std::string doubled_text(const Report& report, std::size_t width) {
  if (!report.doubled) return "";
  const auto& [name, time, next] = *report.doubled;
  const std::string then = !next ? "nothing alone binds then"
                                 : fmt::format("{} binds {} ({:.2f} % shorter for 1 %)", next->name,
                                               next->name == name ? "still" : "next", next->value);
  return wrap(fmt::format("With {} twice as fast it takes {}, {:.2f} times as fast; {}.", name,
                          to_text(time), report.iteration_time / time, then),
              width) +
         "\n";
}

std::string critical_text(const Report& report) {
  Table table{.header = {"Critical path", "time", "share", "tasks"}};
  const auto part = [&](Seconds time) {
    return percent_text(share_of(time, report.iteration_time));
  };
  const std::size_t shown = std::min(tasks_shown, report.critical_tasks.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [name, time, tasks] = report.critical_tasks[i];
    table.rows.push_back({name, to_text(time), part(time), number_text(tasks)});
  }
  Seconds rest;
  for (std::size_t i = shown; i < report.critical_tasks.size(); ++i)
    rest += report.critical_tasks[i].time;
  if (rest > Seconds(0)) table.rows.push_back({"all else", to_text(rest), part(rest)});
  return table_text(table);
}

std::string life_text(const Report::Path& path) {
  constexpr double days_per_year = 365.25;
  if (path.life_years && *path.life_years < 1) {
    return fmt::format("{:.0f} days", days_per_year * *path.life_years);
  }
  if (path.life_years) return fmt::format("{:.3g} years", *path.life_years);
  return path.written > Bytes(0) ? "not rated" : "";
}

// "nvme: 38.4 drive writes a day, rated for 1. Write amplification 1.1, rated with 2.5."
std::string wear_text(const Report::Path& path) {
  if (path.written <= Bytes(0) || !path.drive_writes_per_day) return "";
  std::string text =
      fmt::format("{}: {} drive writes a day", path.name, number_text(*path.drive_writes_per_day));
  if (!path.rated_drive_writes_per_day) return text + ", not rated.";
  return text + fmt::format(", rated for {}. Write amplification {}, rated with {}.",
                            number_text(*path.rated_drive_writes_per_day),
                            number_text(path.write_amplification),
                            number_text(path.rated_write_amplification));
}

std::string storage_text(const Report& report, std::size_t width) {
  Table table{.header = {"Storage, each iteration", "read", "written", "written a day", "life"}};
  for (const Report::Path& p : report.paths) {
    if (p.read + p.written <= Bytes(0)) continue;
    table.rows.push_back(
        {p.name, to_text(p.read), to_text(p.written), to_text(p.written_per_day), life_text(p)});
  }
  std::string text = table_text(table);
  for (const Report::Path& p : report.paths) {
    const std::string wear = wear_text(p);
    if (!wear.empty()) text += wrap(wear, width, 2) + "\n";
  }
  return text;
}

std::string links_text(const Report& report) {
  Table table{.header = {"Copies, each iteration", "bytes"}};
  std::vector<Block> blocks;
  for (const auto& [name, bytes, count] : report.links) {
    if (bytes > Bytes(0)) blocks.push_back({.rows = {{name, to_text(bytes)}}, .count = count});
  }
  // Directions alternate in the order of names; equal amounts belong together.
  std::ranges::stable_sort(blocks, {}, [](const Block& b) { return b.rows.front().back(); });
  add_blocks(table, blocks);
  return table_text(table);
}

std::string workload_text(const RunFacts& facts, std::size_t width) {
  if (facts.parameters == 0) return "";
  std::string text = count_text(static_cast<double>(facts.parameters)) + " parameters";
  if (facts.active_parameters != 0 && facts.active_parameters != facts.parameters) {
    text += " (" + count_text(static_cast<double>(facts.active_parameters)) + " active)";
  }
  text += fmt::format(", {} tokens per iteration on {} GPU{}.", facts.tokens_per_iteration,
                      facts.gpus, facts.gpus == 1 ? "" : "s");
  text += fmt::format(" {} counted for the workload, {} computed.", to_text(facts.model_flops),
                      to_text(facts.hardware_flops));
  return wrap(text, width) + "\n";
}

std::string list_text(const char* title, const std::vector<std::string>& lines, std::size_t width) {
  if (lines.empty()) return "";
  std::string text = std::string(title) + "\n";
  for (const std::string& line : lines) text += "  - " + wrap(line, width - 4, 4) + "\n";
  return text;
}

std::string engine_remarks_text(const RunFacts& facts, std::size_t width) {
  std::vector<std::string> lines;
  for (const RunFacts::Remark& r : facts.engine_remarks)
    lines.push_back(fmt::format("{}: {}: {}", r.kind, r.key, r.text));
  return list_text("What DeepSpeed will make of this file", lines, width);
}

std::string assumptions_text(const Report& report, std::size_t width) {
  const std::vector<std::string>& all = report.facts.assumptions;
  std::vector<std::string> lines = foremost_assumptions(report, assumptions_shown);
  const std::size_t more = all.size() - lines.size();
  if (more > 0) {
    const char* what = lines.empty() ? "of devices that are never exposed here" : "more";
    lines.push_back(fmt::format("{} {}; --json lists all", more, what));
  }
  return list_text("Assumed, not measured", lines, width);
}

// Commands are for copying: never broken.
std::string next_text(const RunFacts& facts) {
  std::string text;
  for (const std::string& command : facts.next) text += "  " + command + "\n";
  return text.empty() ? "" : "Next\n" + text;
}

}  // namespace

std::string to_text(const Report& report, std::size_t width) {
  width = std::max<std::size_t>(width, 20);
  const RunFacts& facts = report.facts;
  return join({title_text(facts, width), verdict_text(report, width), phases_text(report, width),
               memory_text(report, width), resources_text(report, width),
               elasticities_text(report) + doubled_text(report, width), critical_text(report),
               storage_text(report, width), links_text(report), workload_text(facts, width),
               list_text("Notes", facts.notes, width), engine_remarks_text(facts, width),
               assumptions_text(report, width), next_text(facts)},
              "\n");
}

}  // namespace tidegate
