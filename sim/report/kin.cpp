#include "sim/report/kin.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/core.h>

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

Kin alone(const Report::Resource& r) {
  return {r.name, r.busy_fraction, r.work_fraction, r.exposed, r.bytes};
}

Kin together(const std::string& name, const std::vector<Report::Resource>& members) {
  Kin kin{.name = fmt::format("{} ({})", name, members.size())};
  for (const Report::Resource& r : members) {
    kin.busy_fraction += r.busy_fraction / static_cast<double>(members.size());
    kin.work_fraction += r.work_fraction / static_cast<double>(members.size());
    kin.exposed += r.exposed;
    kin.bytes += r.bytes;
  }
  return kin;
}

}  // namespace

std::vector<Kin> kin_of(const std::vector<Report::Resource>& resources) {
  std::map<std::string, std::vector<Report::Resource>> families;
  for (const Report::Resource& r : resources) {
    if (r.busy_fraction > 0 || r.exposed > Seconds(0)) families[kin_name(r.name)].push_back(r);
  }
  std::vector<Kin> list;
  for (const auto& [name, members] : families) {
    const auto [least, most] = std::ranges::minmax(members, {}, &Report::Resource::busy_fraction);
    if (members.size() > 1 && most.busy_fraction - least.busy_fraction <= alike) {
      list.push_back(together(name, members));
    } else {
      for (const Report::Resource& r : members) list.push_back(alone(r));
    }
  }
  std::ranges::stable_sort(list, [](const Kin& a, const Kin& b) {
    return std::pair(a.exposed, a.busy_fraction) > std::pair(b.exposed, b.busy_fraction);
  });
  return list;
}

}  // namespace tidegate
