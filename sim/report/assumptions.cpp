#include "sim/report/assumptions.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

namespace tidegate {
namespace {

// "paths.nvme.read" as {"paths", "nvme", "read"}.
std::vector<std::string_view> parts_of(std::string_view key) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t dot = key.find('.');
    parts.push_back(key.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    key.remove_prefix(dot + 1);
  }
}

bool is_any_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// "node1.nvme" as "nvme": what several simulated nodes have each.
std::string_view without_node(std::string_view name) {
  constexpr std::string_view node = "node";
  const std::size_t end = name.find_first_not_of("0123456789", node.size());
  const bool is_of_node = name.starts_with(node) && end != std::string_view::npos &&
                          end > node.size() && name[end] == '.';
  return is_of_node ? name.substr(end + 1) : name;
}

// Resources by the text before and after the number that tells copies apart.
struct Pattern {
  std::string_view begins, ends;
  bool matches(std::string_view full_name) const {
    const std::string_view name = without_node(full_name);
    return name.size() >= begins.size() + ends.size() && name.starts_with(begins) &&
           name.ends_with(ends);
  }
};

std::vector<Pattern> resources_of(std::span<const std::string_view> key) {
  const std::string_view part = key.front(), last = key.back();
  if (is_any_of(last, {"endurance", "warranty", "write_amplification", "rated_write_amplification",
                       "pageable_factor", "gpudirect"})) {
    return {};
  }
  if (part == "host" && last == "launch") return {};  // no shareable rate
  if (part == "gpus" && last == "h2d") return {{"gpu", ".h2d"}};
  if (part == "gpus" && last == "d2h") return {{"gpu", ".d2h"}};
  if (part == "gpus" && is_any_of(last, {"duplex", "copy_half_size"})) {
    return {{"gpu", ".h2d"}, {"gpu", ".d2h"}};
  }
  if (part == "gpus" && last == "collective_compute_fraction") return {{"gpu", ".fabric"}};
  if (part == "gpus") return {{"gpu", ".compute"}, {"gpu", ".hbm"}};
  if (part == "host" && key.size() > 3) return {{key[2], ""}};
  if (part == "host") return {{"numa", ""}};
  if (part == "fabric") return {{"gpu", ".fabric"}};
  if (part == "network") return {{"network", ""}};
  if (part == "paths" && key.size() > 2) return {{key[1], ""}};
  return {};
}

// The pool whose room an assumption is about, or nothing.
std::string_view pool_of(std::span<const std::string_view> key) {
  if (!is_any_of(key.back(), {"memory", "context", "base_use", "process_use", "capacity"}))
    return "";
  if (key.front() == "paths" && key.size() > 2) return key[1];
  return key.front() == "gpus" ? "gpu" : key.front();
}

double weight_of(const Report& report, const std::string& assumption) {
  const std::string_view text(assumption);
  const std::vector<std::string_view> key = parts_of(text.substr(0, text.find(" = ")));
  if (const std::string_view pool = pool_of(key); !pool.empty()) {
    const bool is_too_small = std::ranges::any_of(report.overflows, [&](const Report::Overflow& o) {
      return without_node(o.pool).starts_with(pool);
    });
    return is_too_small ? std::numeric_limits<double>::infinity() : 0;
  }
  double exposed = 0;
  for (const Pattern& pattern : resources_of(key)) {
    for (const Report::Resource& r : report.resources) {
      if (pattern.matches(r.name)) exposed += r.exposed.value();
    }
  }
  return exposed;
}

}  // namespace

std::vector<std::string> foremost_assumptions(const Report& report, std::size_t most) {
  std::vector<std::pair<double, std::string>> weighed;
  for (const std::string& assumption : report.facts.assumptions) {
    const double weight = weight_of(report, assumption);
    if (weight > 0) weighed.emplace_back(weight, assumption);
  }
  std::ranges::stable_sort(weighed, std::greater{}, [](const auto& w) { return w.first; });
  if (weighed.size() > most) weighed.resize(most);
  std::vector<std::string> lines;
  for (auto& [weight, assumption] : weighed) lines.push_back(std::move(assumption));
  return lines;
}

}  // namespace tidegate
