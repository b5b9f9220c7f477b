#include "sim/deepspeed/remark.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace tidegate {

std::string_view name_of(RemarkKind kind) {
  constexpr std::array<std::string_view, 6> names = {"refused", "changed",       "ignored",
                                                     "filled",  "not simulated", "left out"};
  return names[static_cast<std::size_t>(kind)];
}

void add_remark(std::vector<Remark>& remarks, Remark remark) {
  const auto same = std::ranges::find_if(
      remarks, [&](const Remark& r) { return r.kind == remark.kind && r.text == remark.text; });
  if (same == remarks.end())
    remarks.push_back(std::move(remark));
  else
    same->key += ", " + remark.key;
}

std::string to_text(const Remark& remark) {
  return fmt::format("{}: {}: {}", name_of(remark.kind), remark.key, remark.text);
}

}  // namespace tidegate
