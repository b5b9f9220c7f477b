#include "sim/search/limits.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "models/base/units.hpp"

namespace tidegate {
namespace {

// A number of the command line, read as a scenario's values are.
template <class Read>
auto read_value(const std::string& option, const std::string& text, Read read) {
  try {
    yaml::Document document(yaml::load_text(text, option));
    const auto value = read(document.root());
    document.finish();
    return value;
  } catch (const InputError& error) {
    throw InputError(option + ": " + error.problems().front().text);
  }
}

// The kind of memory that a pool is: "gpu3", "node1.host", or a storage path's name.
std::string kind_of(const Need& need) {
  if (need.is_gpu) return "gpu";
  if (need.is_host) return "host";
  return need.pool;
}

}  // namespace

Limits read_limits(const std::vector<std::string>& texts, const Machine& machine) {
  std::vector<std::string> names = {"gpu", "host", "life", "changes"};
  for (const StoragePath& path : machine.paths()) names.push_back(path.name);
  Limits limits;
  for (const std::string& text : texts) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string name = text.substr(0, equals);
    if (equals == text.size() || std::ranges::find(names, name) == names.end()) {
      std::string list;
      for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
      const std::string near = nearest(name, names);
      throw InputError(fmt::format(
          "--limit {}: write NAME=VALUE with one of: {}{}", text, list,
          near.empty() || near == name ? "" : fmt::format(" (did you mean '{}'?)", near)));
    }
    const auto value = [&](auto read) {
      return read_value("--limit " + text, text.substr(equals + 1), read);
    };
    if (name == "life") {
      limits.life_years = value([](const yaml::Node& n) { return n.number(0); });
    } else if (name == "changes") {
      limits.changes =
          static_cast<std::size_t>(value([](const yaml::Node& n) { return n.count(0); }));
    } else {
      limits.bytes[name] = value([](const yaml::Node& n) { return n.quantity<Bytes>(); });
    }
  }
  return limits;
}

void limit(std::vector<Need>& needs, const Limits& limits) {
  for (Need& need : needs) {
    const auto most = limits.bytes.find(kind_of(need));
    if (most != limits.bytes.end()) need.capacity = std::min(need.capacity, most->second);
  }
}

std::string violated(const Trial& trial, const Limits& limits) {
  for (const Need& need : trial.needs) {
    if (need.fits() || !limits.bytes.contains(kind_of(need))) continue;
    return fmt::format("{} needs {}, more than the limit of {}", need.pool, to_text(need.bytes),
                       to_text(need.capacity));
  }
  for (const Trial::Wear& wear : trial.wear) {
    if (!limits.life_years || !wear.life_years || *wear.life_years >= *limits.life_years) continue;
    return fmt::format("{} lasts {:.2g} years, less than the limit of {:g}", wear.path,
                       *wear.life_years, *limits.life_years);
  }
  return "";
}

}  // namespace tidegate
