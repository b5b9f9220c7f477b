#include "sim/report/fixes.hpp"

#include <cmath>

#include <fmt/core.h>

#include "sim/report/table.hpp"
#include "sim/report/words.hpp"

namespace tidegate {
namespace {

// Flags are for copying: one a line, never broken.
std::string flags_text(const Report::Fix& fix, const char* indent) {
  std::string text;
  for (const std::string& set : fix.sets) {
    text += fmt::format("{}--set {}\n", indent, shell_word(set));
  }
  return text;
}

// "8.0 % longer" than without the change.
std::string slow_down_text(double slow_down) {
  const double change = slow_down - 1;
  if (std::abs(change) < 0.0005) return "as long";
  if (slow_down >= 2) return fmt::format("{:.3g} times as long", slow_down);
  return percent_text(std::abs(change)) + (change > 0 ? " longer" : " shorter");
}

std::string cost_text(const Report::Fix& fix) {
  return fmt::format("An iteration takes {} ({}), {} tokens/s.", to_text(fix.iteration_time),
                     slow_down_text(fix.slow_down), number_text(fix.tokens_per_second));
}

// Pools that are alike (the GPUs of a node) are said once.
template <class Say>
std::string pools_text(const std::vector<Report::Fix::Pool>& pools, Say say) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < pools.size();) {
    std::size_t next = i;
    std::int32_t count = 0;
    while (next < pools.size() && pools[next].peak == pools[i].peak &&
           pools[next].capacity == pools[i].capacity) {
      count += pools[next++].count;
    }
    parts.push_back(say(alike_text(pools[i].name, count), pools[i]));
    i = next;
  }
  return join(parts, ", ");
}

std::string found_text(const Report::Fixes& fixes, std::size_t width) {
  std::string text = wrap(fmt::format("Changes that fit, fewest keys first, then fastest; {} were "
                                      "simulated.",
                                      fixes.tried),
                          width) +
                     "\n";
  for (std::size_t i = 0; i < fixes.found.size(); ++i) {
    const Report::Fix& fix = fixes.found[i];
    const std::string peaks = pools_text(fix.pools, [](const std::string& name,
                                                       const Report::Fix::Pool& pool) {
      return fmt::format("{} peaks at {} of {}", name, to_text(pool.peak), to_text(pool.capacity));
    });
    text += fmt::format("  {}. {}\n", i + 1, wrap(fix.what, width - 5, 5)) +
            flags_text(fix, "     ") + "     " +
            wrap(cost_text(fix) + " " + peaks + ".", width - 5, 5) + "\n";
  }
  return text;
}

std::string nearest_text(const Report::Fixes& fixes, std::size_t width) {
  std::string text =
      wrap(fmt::format("No change found that fits; {} were simulated.", fixes.tried), width) + "\n";
  if (!fixes.nearest) return text;
  const Report::Fix& near = *fixes.nearest;
  const std::string sizes = pools_text(near.pools, [](const std::string& name,
                                                      const Report::Fix::Pool& pool) {
    if (pool.peak <= pool.capacity) return std::string();
    return fmt::format("{} of {} (it has {})", name, to_text(pool.peak), to_text(pool.capacity));
  });
  text += "  " + wrap("Nearest: " + near.what, width - 2, 2) + "\n" + flags_text(near, "  ");
  return text + "  " + wrap("It would fit with " + sizes + ". " + cost_text(near), width - 2, 2) +
         "\n";
}

}  // namespace

std::string fixes_text(const Report& report, std::size_t width) {
  if (!report.fixes) return "";
  const Report::Fixes& fixes = *report.fixes;
  return fixes.found.empty() ? nearest_text(fixes, width) : found_text(fixes, width);
}

}  // namespace tidegate
