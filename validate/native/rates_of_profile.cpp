// Rates that a profile of this machine states.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "calib/node/yaml_text.hpp"
#include "models/base/error.hpp"
#include "models/profile.hpp"
#include "validate/native/rates.hpp"

namespace tidegate {
namespace {

using calib::Entry;
using calib::Section;

const yaml::Value& inner(const yaml::Value& values, const std::string& key,
                         const std::string& path) {
  const yaml::Value* found = values.find(key);
  if (found != nullptr) return *found;
  throw InputError(
      fmt::format("{}: {} is missing; a profile that tidegate calib --threads 1 "
                  "--storage DIR wrote on this machine is expected",
                  path, key));
}

void check_host(const yaml::Value& profile, const std::string& path) {
  const yaml::Value& host = inner(inner(profile, "calibration", path), "host", path);
  const std::string id = inner(host, "id", path).text, here = rig::host_facts().id;
  if (id == here || id == rig::host_facts(true).id) return;
  throw InputError(
      fmt::format("{}: was measured on host {}, and this is {}; leave --hardware out "
                  "to measure now",
                  path, id, here));
}

// A cited value of a profile (models/cited.hpp).
Entry entry_of(const std::string& key, const yaml::Value& value) {
  Entry e{.key = key, .text = {}, .source = {}};
  const yaml::Value* points = value.find("points");
  const yaml::Value* plain = value.find("value");
  if (points == nullptr && plain == nullptr) {
    e.text = calib::flow_text(value);
    e.kind = Entry::Kind::plain;
    return e;
  }
  e.kind = points != nullptr ? Entry::Kind::points : Entry::Kind::value;
  e.text = points != nullptr ? calib::flow_text(*points) : plain->text;
  const yaml::Value* source = value.find("source");
  e.is_assumed = source == nullptr;
  if (e.is_assumed) source = value.find("assumed");
  if (source != nullptr) e.source = source->text;
  if (const yaml::Value* u = value.find("uncertainty")) e.uncertainty = std::stod(u->text) / 100;
  return e;
}

Section copied(const yaml::Value& from, std::string key, std::span<const char* const> names) {
  Section section{std::move(key), {}};
  for (const char* name : names) {
    const yaml::Value* value = from.find(name);
    if (value != nullptr) section.entries.push_back(entry_of(name, *value));
  }
  return section;
}

// The executor's products are of fp32 whatever a kernel's type (validate/engine/kernels.hpp): what
// a profile says of fp32 stands for both.
yaml::Value with_products_of_fp32(yaml::Value gpus) {
  for (const auto& [key, single] : {std::pair{"peak_16", "peak_32"},
                                    {"gemm_efficiency", "gemm_efficiency_32"},
                                    {"attention_efficiency", "attention_efficiency_32"}}) {
    const yaml::Value* found = gpus.find(single);
    if (found == nullptr) continue;
    const yaml::Value of_fp32 = *found;
    const auto entry = std::ranges::find(gpus.entries, key, &yaml::Entry::key);
    if (entry != gpus.entries.end()) entry->value = of_fp32;
  }
  return gpus;
}

}  // namespace

Rates rates_of_profile(const std::string& file, const std::vector<NativePath>& paths) {
  const yaml::Value profile = profile_values(file);
  read_machine(profile);  // whatever is wrong with it is said with its place
  check_host(profile, file);
  constexpr std::array device = {"peak_16",
                                 "peak_32",
                                 "gemm_efficiency",
                                 "memory_bandwidth",
                                 "memory_efficiency",
                                 "attention_efficiency",
                                 "h2d",
                                 "d2h",
                                 "copy_half_size"};
  constexpr std::array host = {"memory_bandwidth", "adam_rate", "cast_rate", "copy_rate"};
  constexpr std::array path_keys = {"read",        "write",   "read_mixed",
                                    "write_mixed", "latency", "block_half_size"};
  Rates rates = {copied(with_products_of_fp32(inner(profile, "gpus", file)), "gpus", device),
                 copied(inner(profile, "host", file), "host", host)};
  const yaml::Value& all = inner(profile, "paths", file);
  if (all.entries.empty()) inner(all, "paths.NAME", file);
  for (const NativePath& path : paths) {
    rates.push_back(copied(all.entries.front().value, "paths." + path.name, path_keys));
  }
  return rates;
}

}  // namespace tidegate
