#include "sim/report/kin.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "sim/report/words.hpp"

namespace tidegate {
namespace {

// "gpu12 h2d" becomes "gpu* h2d": a number that letters follow is part of a word.
std::string kin_name(std::string_view name) {
  constexpr std::string_view digits = "0123456789";
  std::string kin;
  while (!name.empty()) {
    const std::size_t length = std::min(name.find_first_not_of(digits), name.size());
    const bool is_in_word =
        length < name.size() && std::isalpha(static_cast<unsigned char>(name[length]));
    if (length == 0)
      kin += name.front();
    else if (is_in_word)
      kin += name.substr(0, length);
    else
      kin += '*';
    name.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return kin;
}

Kin together(const std::string& name, const std::vector<Report::Resource>& members) {
  const auto range = [&](double Report::Resource::* fraction) {
    const auto [least, most] = std::ranges::minmax(members, {}, fraction);
    return Range{least.*fraction, most.*fraction};
  };
  std::int32_t count = 0;
  for (const Report::Resource& r : members) count += r.count;
  Kin kin{.name = count == 1 ? members.front().name : fmt::format("{} ({})", name, count),
          .busy_fraction = range(&Report::Resource::busy_fraction),
          .work_fraction = range(&Report::Resource::work_fraction),
          .only_carries = true};
  for (const Report::Resource& r : members) {
    kin.exposed += r.exposed;
    kin.bytes += r.bytes * static_cast<double>(r.count);
    kin.only_carries &= r.only_carries;
  }
  return kin;
}

}  // namespace

std::string percent_text(const Range& range) {
  if (range.most - range.least <= alike) return percent_text((range.least + range.most) / 2);
  return fmt::format("{:.0f} to {:.0f} %", 100 * range.least, 100 * range.most);
}

std::vector<Kin> kin_of(const std::vector<Report::Resource>& resources) {
  std::map<std::string, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    const Report::Resource& r = resources[i];
    if (r.busy_fraction > 0 || r.exposed > Seconds(0)) families[kin_name(r.name)].push_back(i);
  }
  std::vector<Kin> list;
  for (const auto& [name, indices] : families) {
    std::vector<Report::Resource> members;
    for (const std::size_t i : indices) members.push_back(resources[i]);
    list.push_back(together(name, members));
    list.back().members = indices;
  }
  std::ranges::stable_sort(list, [](const Kin& a, const Kin& b) {
    return std::pair(a.exposed, a.busy_fraction.most) > std::pair(b.exposed, b.busy_fraction.most);
  });
  return list;
}

}  // namespace tidegate
