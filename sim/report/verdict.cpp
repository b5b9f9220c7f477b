#include "sim/report/verdict.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "sim/report/fixes.hpp"
#include "sim/report/kin.hpp"
#include "sim/report/table.hpp"
#include "sim/report/words.hpp"

namespace tidegate {
namespace {

constexpr double told_elasticity = 0.05;  // percent of an iteration for 1 %: assumed worth a word

std::string owners_text(const std::vector<Report::Owner>& owners) {
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : owners) parts.push_back(name + " " + bytes_text(bytes));
  return join(parts, ", ");
}

// Owners that would make room if their bytes lived elsewhere; the smallest change comes first. The
// operating system and the processes live nowhere else.
std::string room_makers(const Report::Overflow& o) {
  constexpr std::array settled = {"system and processes", "system", "processes"};
  std::vector<std::string> names;
  for (auto owner = o.owners.rbegin(); owner != o.owners.rend(); ++owner) {
    const Bytes bytes(static_cast<double>(owner->bytes));
    if (std::ranges::find(settled, owner->name) != settled.end()) continue;
    if (bytes >= o.needed - o.capacity) names.push_back(owner->name);
  }
  return join(names, " or ");
}

// When training would fit and only start-up does not.
std::string startup_text(const Report& report, const Report::Overflow& o) {
  const auto pool = std::ranges::find(report.pools, o.pool, &Report::Pool::name);
  const bool is_startup_alone = pool != report.pools.end() && pool->peaks_at_startup() &&
                                pool->training_peak <= pool->capacity;
  if (!is_startup_alone) return "";
  return fmt::format(" Start-up alone is too much; training needs {}.",
                     to_text(pool->training_peak));
}

std::string overflow_text(const std::string& pools, const Report& report, const Report::Overflow& o,
                          std::size_t width) {
  const std::string what = fmt::format(
      "{}: {} needed, room for {}. First too much is '{}' at {}, when {} are held:", pools,
      to_text(o.needed), to_text(o.capacity), o.task, to_text(o.at), to_text(o.held));
  std::string cure = fmt::format("{} too much.", to_text(o.needed - o.capacity));
  const std::string makers = room_makers(o);
  if (!makers.empty()) cure += " Enough alone, if it lived elsewhere: " + makers + ".";
  cure += startup_text(report, o);
  return wrap(what, width) + "\n  " + wrap(owners_text(o.owners), width - 2, 2) + "\n  " +
         wrap(cure, width - 2, 2) + "\n";
}

bool is_alike(const Report::Overflow& a, const Report::Overflow& b) {
  return a.task == b.task && a.capacity == b.capacity && a.held == b.held && a.needed == b.needed &&
         a.owners == b.owners;
}

std::int32_t count_of(const Report& report, const std::string& pool) {
  const auto at = std::ranges::find(report.pools, pool, &Report::Pool::name);
  return at == report.pools.end() ? 1 : at->count;
}

bool has_overflow(const Report& report, const std::string& pool) {
  return std::ranges::find(report.overflows, pool, &Report::Overflow::pool) !=
         report.overflows.end();
}

std::string overflows_text(const Report& report, std::size_t width) {
  const std::vector<Report::Overflow>& overflows = report.overflows;
  std::string text;
  std::vector<bool> is_told(overflows.size(), false);
  for (std::size_t i = 0; i < overflows.size(); ++i) {
    if (is_told[i]) continue;
    std::vector<std::string> pools;
    std::int32_t count = 0;
    for (std::size_t k = i; k < overflows.size(); ++k) {
      if (!is_alike(overflows[i], overflows[k])) continue;
      is_told[k] = true;
      pools.push_back(overflows[k].pool);
      count += count_of(report, overflows[k].pool);
    }
    const bool is_listed = pools.size() == 2 && count == 2;
    const std::string names = is_listed ? join(pools, ", ") : alike_text(pools.front(), count);
    text += overflow_text(names, report, overflows[i], width);
  }
  return text.empty() ? "" : "Does not fit.\n" + text + "\n";
}

std::string shortage_text(const std::string& pools, const Report::Pool& pool, std::size_t width) {
  const Report::OutOfMemory& o = *pool.allocator->out_of_memory;
  const std::string what = fmt::format(
      "{}: '{}' asks for {} at {}, when {} are allocated and {} reserved of {}. The bytes fit, the "
      "allocator's segments do not, even after it flushed its cache: fragmentation.",
      pools, o.task, to_text(o.asked), to_text(o.at), to_text(o.allocated), to_text(o.reserved),
      to_text(pool.capacity));
  const std::string cure = o.fits_expandable
                               ? "Fits with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
                                 "(memory.expandable_segments here)."
                               : "Expandable segments would not be enough.";
  return wrap(what, width) + "\n  " + wrap(cure, width - 2, 2) + "\n";
}

bool is_fragmented(const Report::Pool& pool) {
  return pool.allocator && pool.allocator->out_of_memory &&
         pool.allocator->out_of_memory->is_fragmentation;
}

// Pools whose bytes are too many are told with their owners, as overflows.
std::string shortages_text(const Report& report, std::size_t width) {
  std::vector<const Report::Pool*> fragmented;
  for (const Report::Pool& pool : report.pools) {
    if (is_fragmented(pool) && !has_overflow(report, pool.name)) fragmented.push_back(&pool);
  }
  if (fragmented.empty()) return "";
  const Report::Pool& first = *fragmented.front();
  const std::string names = fragmented.size() == 1
                                ? first.name
                                : fmt::format("{} (first of {})", first.name, fragmented.size());
  return (report.overflows.empty() ? "Does not fit.\n" : "") + shortage_text(names, first, width) +
         "\n";
}

std::string speed_text(const Report& report) {
  std::string text =
      report.fits ? "Fits. An iteration takes " : "With enough memory, an iteration would take ";
  text += to_text(report.iteration_time);
  std::vector<std::string> rates;
  if (report.tokens_per_second > 0)
    rates.push_back(number_text(report.tokens_per_second) + " tokens/s");
  if (report.model_rate_per_gpu.value() > 0)
    rates.push_back(to_text(report.model_rate_per_gpu) + " per GPU");
  return text + (rates.empty() ? "." : ": " + join(rates, ", ") + ".");
}

// What is exposed most shortens little where another is nearly as slow: then another binds.
std::string binds_text(const Report& report, const std::string& exposed) {
  const auto& all = report.elasticities;
  const auto own = std::ranges::find(all, exposed, &Report::Elasticity::name);
  const auto top = std::ranges::max_element(all, {}, &Report::Elasticity::value);
  if (own == all.end() || top == own || top->value < told_elasticity) return "";
  return fmt::format("; but {} binds ({:.2f} % shorter for 1 %, {} {:.2f} %)", top->name,
                     top->value, own->name, std::max(own->value, 0.0));
}

std::string binding_text(const Report& report) {
  const std::vector<Kin> kin = kin_of(report.resources);
  const Seconds most = kin.empty() ? Seconds(0) : kin.front().exposed;
  const auto part = [&](Seconds time) {
    return percent_text(share_of(time, report.iteration_time));
  };
  if (report.wait > std::max(most, report.latency)) {
    return "Most exposed: waiting that no task explains, " + part(report.wait) + ".";
  }
  if (report.latency > most)
    return "Most exposed: latencies and fixed delays, " + part(report.latency) + ".";
  if (most == Seconds(0)) return "";
  return fmt::format("Most exposed: {}, {} busy and {} exposed{}.", kin.front().name,
                     percent_text(kin.front().busy_fraction), part(most),
                     binds_text(report, kin.front().name));
}

std::string bound_text(const Report& report) {
  const Report::Bound& bound = report.bound;
  if (bound.time <= Seconds(0)) return "";
  // The margin is for rounding: a perfect schedule's time and its bound differ in the last digits.
  if (bound.time > 1.000001 * report.iteration_time) {
    return fmt::format(
        "Not steady: {} has {} of work per iteration and falls behind. Run more iterations.",
        bound.limited_by, to_text(bound.time));
  }
  const bool is_chain = bound.limited_by == "dependences";
  return fmt::format("No schedule of these tasks beats {} ({}).", to_text(bound.time),
                     is_chain ? "longest chain of dependences" : "work of " + bound.limited_by);
}

}  // namespace

std::string verdict_text(const Report& report, std::size_t width) {
  std::string text = overflows_text(report, width) + shortages_text(report, width);
  const std::string fixes = fixes_text(report, width);
  if (!fixes.empty()) text += fixes + "\n";
  for (const std::string& line : {speed_text(report), binding_text(report), bound_text(report)}) {
    if (!line.empty()) text += wrap(line, width) + "\n";
  }
  return text;
}

}  // namespace tidegate
