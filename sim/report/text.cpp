#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include "sim/report/report.hpp"
#include "sim/report/table.hpp"

namespace tidegate {
namespace {

constexpr std::size_t owners_shown = 4;
constexpr std::size_t tasks_shown = 6;
constexpr double bar_columns = 24;

using Row = std::vector<std::string>;
using Block =
    std::vector<Row>;  // rows that belong together; the first cell of the first is its name

// Four significant digits without an exponent.
std::string number(double v) {
  if (std::abs(v) < 1e4) return fmt::format("{:.4g}", v);
  const double step = std::pow(10, std::floor(std::log10(std::abs(v))) - 3);
  return fmt::format("{:.0f}", std::round(v / step) * step);
}

std::string count(double v) {
  if (v >= 0.99995e9) return number(v / 1e9) + " billion";
  if (v >= 0.99995e6) return number(v / 1e6) + " million";
  return number(v);
}

std::string percent(double fraction) {
  const double p = 100 * fraction;
  return p != 0 && std::abs(p) < 9.95 ? fmt::format("{:.1f} %", p) : fmt::format("{:.0f} %", p);
}

double share(Seconds part, Seconds whole) { return whole > Seconds(0) ? part / whole : 0; }

std::string bytes_text(std::int64_t bytes) { return to_text(Bytes(static_cast<double>(bytes))); }

std::string bar(double fraction) {
  constexpr std::array eighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto length =
      static_cast<std::size_t>(std::lround(8 * bar_columns * std::clamp(fraction, 0.0, 1.0)));
  std::string text;
  for (std::size_t i = 0; i < length / 8; ++i) text += "█";
  return text + eighths[length % 8];
}

std::string join(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

bool is_alike(Block a, const Block& b) {
  a.front().front() = b.front().front();
  return a == b;
}

// Neighbours that differ in their name only (the GPUs of a node, mostly) become one.
void add_blocks(Table& table, const std::vector<Block>& blocks) {
  for (std::size_t i = 0; i < blocks.size();) {
    std::size_t next = i + 1;
    while (next < blocks.size() && is_alike(blocks[next], blocks[i])) ++next;
    Block block = blocks[i];
    if (next - i > 1) block.front().front() += fmt::format(" ({} alike)", next - i);
    table.rows.insert(table.rows.end(), block.begin(), block.end());
    i = next;
  }
}

std::string owners_text(const std::vector<Report::Owner>& owners) {
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : owners) parts.push_back(name + " " + bytes_text(bytes));
  return join(parts, ", ");
}

// Owners that would make room if their bytes lived elsewhere: the smallest change comes first.
std::string room_makers(const Report::Overflow& o) {
  std::vector<std::string> names;
  for (auto owner = o.owners.rbegin(); owner != o.owners.rend(); ++owner) {
    if (Bytes(static_cast<double>(owner->bytes)) >= o.needed - o.capacity)
      names.push_back(owner->name);
  }
  return join(names, " or ");
}

std::string overflow_text(const Report::Overflow& o, std::size_t width) {
  std::string text =
      wrap(fmt::format("{} holds {} and {} are needed. The first too much is '{}' at {}, "
                       "when {} are held:",
                       o.pool, to_text(o.capacity), to_text(o.needed), o.task, to_text(o.at),
                       to_text(o.held)),
           width);
  text += "\n  " + wrap(owners_text(o.owners), width - 2, 2) + "\n";
  const Bytes excess = o.needed - o.capacity;
  std::string cure = fmt::format("{} must go or {} grow by them.", to_text(excess), o.pool);
  const std::string makers = room_makers(o);
  if (!makers.empty()) cure += fmt::format(" Moving one of these elsewhere is enough: {}.", makers);
  return text + "  " + wrap(cure, width - 2, 2) + "\n";
}

std::string speed_text(const Report& report) {
  std::string text =
      report.fits ? "Fits. An iteration takes " : "With enough memory, an iteration would take ";
  text += to_text(report.iteration_time);
  std::vector<std::string> rates;
  if (report.tokens_per_second > 0) rates.push_back(number(report.tokens_per_second) + " tokens/s");
  if (report.model_rate_per_gpu.value() > 0) {
    rates.push_back(to_text(report.model_rate_per_gpu) + " per GPU");
  }
  return text + (rates.empty() ? "." : ": " + join(rates, ", ") + ".");
}

std::string binding_text(const Report& report) {
  const auto top = std::ranges::max_element(report.resources, {}, &Report::Resource::exposed);
  const Seconds most = top == report.resources.end() ? Seconds(0) : top->exposed;
  const Seconds all = report.iteration_time;
  if (report.latency >= most && report.latency >= report.wait && report.latency > Seconds(0)) {
    return fmt::format("Latencies hold it back: {} of the time.",
                       percent(share(report.latency, all)));
  }
  if (report.wait > most) {
    return fmt::format("Waiting that no task explains is {} of the time.",
                       percent(share(report.wait, all)));
  }
  if (most == Seconds(0)) return "";
  return fmt::format("{} holds it back: {} busy and {} exposed.", top->name,
                     percent(top->busy_fraction), percent(share(most, all)));
}

std::string bound_text(const Report& report) {
  const Report::Bound& bound = report.bound;
  if (bound.time <= Seconds(0)) return "";
  if (bound.time > 1.000001 * report.iteration_time) {
    return fmt::format(
        "Not steady: {} has {} of work per iteration and falls behind. Run more iterations.",
        bound.limited_by, to_text(bound.time));
  }
  return fmt::format("No schedule of these tasks beats {} ({}).", to_text(bound.time),
                     bound.limited_by == "dependences" ? "longest chain of dependences"
                                                       : "work of " + bound.limited_by);
}

std::string headline(const Report& report, std::size_t width) {
  const RunFacts& facts = report.facts;
  std::vector<std::string> title = {facts.scenario, facts.policy, facts.profile, facts.revision};
  std::string text = join(title, " · ");
  text = text.empty() ? "" : wrap(text, width) + "\n\n";
  if (!report.fits) text += "Does not fit.\n";
  for (const Report::Overflow& o : report.overflows) text += overflow_text(o, width);
  if (!report.fits) text += "\n";
  for (const std::string& line : {speed_text(report), binding_text(report), bound_text(report)}) {
    if (!line.empty()) text += wrap(line, width) + "\n";
  }
  return text;
}

std::string phases_text(const Report& report, std::size_t width) {
  Table table{.header = {"Phase", "time", "share", ""}};
  table.align = {Align::left, Align::right, Align::right, Align::left};
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (report.phases[p] == Seconds(0)) continue;
    const double part = share(report.phases[p], report.iteration_time);
    table.rows.push_back(
        {name_of(static_cast<Phase>(p)), to_text(report.phases[p]), percent(part), bar(part)});
  }
  table.rows.push_back({"iteration", to_text(report.iteration_time), "100 %", ""});
  std::string note;
  if (report.steady_iterations > 1)
    note = fmt::format("Mean of the last {} iterations. ", report.steady_iterations);
  if (report.iterations.size() > 1)
    note += fmt::format("The first took {}.", to_text(report.first_iteration_time));
  if (report.drain > Seconds(0))
    note +=
        fmt::format(" After the last, writes and other work drain for {}.", to_text(report.drain));
  return to_text(table) + (note.empty() ? "" : wrap(note, width) + "\n");
}

std::string used_text(Bytes part, Bytes capacity) {
  return capacity > Bytes(0) && std::isfinite(capacity.value()) ? percent(part / capacity) : "";
}

Block pool_block(const Report::Pool& pool) {
  const bool is_bounded = std::isfinite(pool.capacity.value());
  Block block = {{pool.name, to_text(pool.peak), is_bounded ? to_text(pool.capacity) : "unbounded",
                  used_text(pool.peak, pool.capacity)}};
  Bytes rest = pool.peak;
  // One owner more is shown when only one would be left: "1 other" is as long as its name.
  const std::size_t shown =
      pool.owners.size() == owners_shown + 1 ? owners_shown + 1 : owners_shown;
  for (std::size_t o = 0; o < std::min(shown, pool.owners.size()); ++o) {
    const Bytes bytes(static_cast<double>(pool.owners[o].bytes));
    block.push_back(
        {"  " + pool.owners[o].name, to_text(bytes), "", used_text(bytes, pool.capacity)});
    rest -= bytes;
  }
  if (pool.owners.size() > shown) {
    block.push_back({fmt::format("  {} others", pool.owners.size() - shown), to_text(rest), "",
                     used_text(rest, pool.capacity)});
  }
  return block;
}

std::string memory_text(const Report& report) {
  Table table{.header = {"Memory", "peak", "capacity", "used"}};
  std::vector<Block> blocks;
  for (const Report::Pool& pool : report.pools) {
    if (pool.peak > Bytes(0)) blocks.push_back(pool_block(pool));
  }
  add_blocks(table, blocks);
  return table.rows.empty() ? "" : to_text(table);
}

std::string resources_text(const Report& report) {
  Table table{.header = {"Resource", "busy", "work", "exposed", "", "bytes"}};
  std::vector<Report::Resource> sorted = report.resources;
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) {
    return std::pair(a.exposed, a.busy_fraction) > std::pair(b.exposed, b.busy_fraction);
  });
  std::vector<Block> blocks;
  for (const Report::Resource& r : sorted) {
    if (r.busy_fraction == 0 && r.exposed == Seconds(0)) continue;
    blocks.push_back({{r.name, percent(r.busy_fraction), percent(r.work_fraction),
                       to_text(r.exposed), percent(share(r.exposed, report.iteration_time)),
                       r.bytes > Bytes(0) ? to_text(r.bytes) : ""}});
  }
  add_blocks(table, blocks);
  if (report.latency > Seconds(0)) {
    table.rows.push_back({"latency", "", "", to_text(report.latency),
                          percent(share(report.latency, report.iteration_time))});
  }
  if (report.wait > Seconds(0)) {
    table.rows.push_back(
        {"wait", "", "", to_text(report.wait), percent(share(report.wait, report.iteration_time))});
  }
  return table.rows.empty() ? "" : to_text(table);
}

std::string critical_text(const Report& report) {
  Table table{.header = {"Critical path", "time", "share", "tasks"}};
  Seconds rest;
  for (std::size_t i = 0; i < report.critical_tasks.size(); ++i) {
    const auto& [name, time, tasks] = report.critical_tasks[i];
    if (i >= tasks_shown)
      rest += time;
    else
      table.rows.push_back(
          {name, to_text(time), percent(share(time, report.iteration_time)), number(tasks)});
  }
  if (rest > Seconds(0)) {
    table.rows.push_back({fmt::format("{} other names", report.critical_tasks.size() - tasks_shown),
                          to_text(rest), percent(share(rest, report.iteration_time))});
  }
  return table.rows.empty() ? "" : to_text(table);
}

std::string storage_text(const Report& report) {
  Table table{.header = {"Storage, each iteration", "read", "written", "written a day", "life"}};
  for (const Report::Path& p : report.paths) {
    if (p.read + p.written <= Bytes(0)) continue;
    const std::string life = p.life_years           ? number(*p.life_years) + " years"
                             : p.written > Bytes(0) ? "not rated"
                                                    : "";
    table.rows.push_back(
        {p.name, to_text(p.read), to_text(p.written), to_text(p.written_per_day), life});
  }
  return table.rows.empty() ? "" : to_text(table);
}

std::string links_text(const Report& report) {
  Table table{.header = {"Copies, each iteration", "bytes"}};
  std::vector<Block> blocks;
  for (const auto& [name, bytes] : report.links) {
    if (bytes > Bytes(0)) blocks.push_back({{name, to_text(bytes)}});
  }
  // Directions alternate in the order of names; equal amounts belong together.
  std::ranges::stable_sort(blocks, {}, [](const Block& b) { return b.front().back(); });
  add_blocks(table, blocks);
  return table.rows.empty() ? "" : to_text(table);
}

std::string workload_text(const RunFacts& facts, std::size_t width) {
  if (facts.parameters == 0) return "";
  std::string text = count(static_cast<double>(facts.parameters)) + " parameters";
  if (facts.active_parameters != 0 && facts.active_parameters != facts.parameters) {
    text += " (" + count(static_cast<double>(facts.active_parameters)) + " active)";
  }
  text += fmt::format(", {} tokens per iteration on {} GPU{}.",
                      count(static_cast<double>(facts.tokens_per_iteration)), facts.gpus,
                      facts.gpus == 1 ? "" : "s");
  text += fmt::format(" {} of model arithmetic, {} computed.", to_text(facts.model_flops),
                      to_text(facts.hardware_flops));
  return wrap(text, width) + "\n";
}

std::string list_text(const char* title, const std::vector<std::string>& lines, std::size_t width) {
  if (lines.empty()) return "";
  std::string text = std::string(title) + "\n";
  for (const std::string& line : lines) text += "  - " + wrap(line, width - 4, 4) + "\n";
  return text;
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
  const std::vector<std::string> sections = {
      headline(report, width),
      phases_text(report, width),
      memory_text(report),
      resources_text(report),
      critical_text(report),
      storage_text(report),
      links_text(report),
      workload_text(report.facts, width),
      list_text("Notes", report.facts.notes, width),
      list_text("Assumed, not measured", report.facts.assumptions, width),
      next_text(report.facts)};
  return join(sections, "\n");
}

}  // namespace tidegate
