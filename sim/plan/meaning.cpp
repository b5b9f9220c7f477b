#include "sim/plan/meaning.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace tidegate {

const char* name_of(Deed::Verb verb) {
  constexpr std::array names = {"initialise", "forward", "backward", "keep", "move", "gather",
                                "reduce",     "add",     "adam",     "sgd",  "cast"};
  return names.at(static_cast<std::size_t>(verb));
}

const char* name_of(Content::Kind kind) {
  constexpr std::array names = {"flow",  "saved", "parameter", "shard",  "gradient", "tied",
                                "slice", "sum",   "sum32",     "master", "moments",  "border"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string to_text(const Content& c) {
  std::string text = fmt::format("{} {}", name_of(c.kind), c.tensor);
  if (c.layer >= 0) text += fmt::format(" of layer {}", c.layer);
  if (c.micro_batch >= 0) text += fmt::format(", micro-batch {}", c.micro_batch);
  if (c.copy > 0) text += fmt::format(", saved by operator {}", c.copy - 1);
  if (c.count > 0) text += fmt::format(", elements {} to {}", c.first, c.first + c.count);
  return text + fmt::format(", rank {}", c.rank);
}

std::size_t hash_of(const Content& c) {
  std::size_t hash = static_cast<std::size_t>(c.kind);
  const auto mix = [&hash](std::int64_t value) {
    hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 29;
  };
  mix(c.rank), mix(c.layer), mix(c.tensor), mix(c.micro_batch), mix(c.copy), mix(c.first);
  mix(c.count);
  return hash;
}

void Meaning::put_in_order(std::size_t tasks) {
  std::ranges::stable_sort(deeds, {}, &Deed::task);
  first_deed.assign(tasks + 1, 0);
  for (const Deed& deed : deeds) ++first_deed[index(deed.task) + 1];
  for (std::size_t t = 0; t < tasks; ++t) first_deed[t + 1] += first_deed[t];
}

}  // namespace tidegate
