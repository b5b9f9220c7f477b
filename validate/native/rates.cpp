#include "validate/native/rates.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "calib/fit/statistics.hpp"
#include "calib/node/sections.hpp"
#include "calib/node/yaml_text.hpp"
#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"
#include "models/profile.hpp"
#include "validate/native/drive_bench.hpp"
#include "validate/native/engine_bench.hpp"

namespace tidegate {
namespace {

using calib::Entry;
using calib::Estimate;
using calib::Measurements;
using calib::Section;

constexpr double gib = 1024. * 1024 * 1024;

// The first path of each device; a file system without one stands for itself.
std::vector<NativePath> measured_paths(const std::vector<NativePath>& paths) {
  std::vector<NativePath> first;
  std::vector<std::string> seen;
  for (const NativePath& path : paths) {
    const std::string device = rig::file_system_of(path.folder).device;
    const std::string key = device.empty() ? path.folder : device;
    if (std::ranges::find(seen, key) != seen.end()) continue;
    seen.push_back(key);
    first.push_back(path);
  }
  return first;
}

// The path among those measured that shares the device, or itself.
std::string measured_as(const std::vector<NativePath>& paths, const NativePath& path) {
  const std::string device = rig::file_system_of(path.folder).device;
  for (const NativePath& other : paths) {
    const bool is_same = device.empty() ? other.folder == path.folder
                                        : rig::file_system_of(other.folder).device == device;
    if (is_same) return other.name;
  }
  return path.name;
}

calib::Setup setup_of(const RateOptions& options) {
  calib::Setup setup;
  setup.effort = calib::Effort::quick;
  setup.host = rig::host_facts();
  setup.file_size = Bytes(2 * gib);
  setup.write_budget = Bytes(64 * gib);
  setup.threads = setup.host.logical_cores;
  setup.seed = options.seed;
  return setup;
}

std::string most_met(const Measurements& m) {
  std::map<std::string, int> reasons;
  for (const calib::RowResult& row : m.rows) {
    for (const std::string& fault : row.faults) ++reasons[fault];
    for (const calib::Block& block : row.blocks) {
      for (const calib::TakenSample& s : block.samples) {
        if (!s.spoiled.empty()) ++reasons[s.spoiled];
      }
    }
  }
  const auto most = std::ranges::max_element(reasons, {}, [](const auto& r) { return r.second; });
  return most == reasons.end() ? "no sample was taken" : most->first;
}

// Estimates with an uncertainty that their blocks can carry.
class Told {
 public:
  Told(const Measurements& m, Spread spread) : m_(m), spread_(spread) {}

  Estimate of(const calib::RowResult& row) const {
    constexpr std::size_t enough = 5;
    Estimate e = calib::estimate(row);
    e.spread = deviation(calib::block_values(row), spread_);
    if (e.blocks < enough) {
      e.spread = std::max(e.spread, pooled_deviation(m_, row.row.gate, spread_));
    }
    return e;
  }
  Estimate of(const std::string& quantity) const {
    const auto rows = calib::rows_of(m_, quantity);
    if (rows.empty()) missing(quantity);
    return of(*rows.front());
  }
  [[noreturn]] void missing(const std::string& quantity) const {
    throw MachineError(
        fmt::format("{} could not be measured: {}; end other work on this machine and try again",
                    quantity, most_met(m_)));
  }

 private:
  const Measurements& m_;
  Spread spread_;
};

Entry entry(const std::string& key, std::string text, const char* quantity, const Estimate& e) {
  return {.key = key,
          .text = std::move(text),
          .source = fmt::format("measured beside the cases: {}, {}; {} blocks", quantity, e.where,
                                e.blocks),
          .uncertainty = e.spread};
}

struct Products {
  Estimate peak;       ///< of the fastest size
  std::string points;  ///< efficiencies over FLOPs
};
Products products_of(const Measurements& m, const Told& told) {
  std::map<double, std::vector<Estimate>> by_size;
  for (const calib::RowResult* row : calib::rows_of(m, "rig.gemm")) {
    double flops = 2;
    for (const char* name : {"m", "n", "k"}) flops *= calib::coordinate(row->row, name);
    by_size[flops].push_back(told.of(*row));
  }
  if (by_size.empty()) told.missing("rig.gemm");
  std::map<double, Estimate> middle;
  Products products;
  for (const auto& [flops, all] : by_size) {
    std::vector<double> values;
    for (const Estimate& e : all) values.push_back(e.value);
    Estimate e = all.front();
    e.value = calib::median(values);
    if (e.value > products.peak.value) products.peak = e;
    middle[flops] = e;
  }
  for (const auto& [flops, e] : middle) {
    products.points += fmt::format("{}[{:.6g} MFLOP, {:.3f}]", products.points.empty() ? "" : ", ",
                                   flops / 1e6, e.value / products.peak.value);
  }
  return products;
}

Section device_section(const Measurements& m, const Told& told) {
  Section gpus{"gpus", {}};
  const auto [peak, points] = products_of(m, told);
  const Estimate attention = told.of("rig.attention"), stream = told.of("rig.stream");
  const Estimate memory = told.of("rig.memory"), copy = told.of("rig.copy");
  const auto part = [](double value, double whole) {
    return calib::number_text(std::min(1.0, value / whole));
  };
  gpus.entries = {
      entry("peak_16", calib::flops_text(peak.value), "rig.gemm", peak),
      entry("peak_32", calib::flops_text(peak.value), "rig.gemm", peak),
      {.key = "gemm_efficiency",
       .text = "[" + points + "]",
       .source = "measured beside the cases: rig.gemm over its fastest size",
       .kind = Entry::Kind::points},
      entry("attention_efficiency", part(attention.value, peak.value), "rig.attention", attention),
      entry("memory_bandwidth", calib::rate_text(memory.value), "rig.memory", memory),
      entry("memory_efficiency", part(stream.value, memory.value), "rig.stream", stream),
      entry("h2d", calib::rate_text(copy.value), "rig.copy", copy),
      entry("d2h", calib::rate_text(copy.value), "rig.copy", copy)};
  return gpus;
}

Section host_section(const Told& told) {
  const Estimate memory = told.of("rig.memory"), copy = told.of("rig.copy");
  const Estimate adam = told.of("rig.adam"), cast = told.of("rig.cast");
  return {"host",
          {entry("memory_bandwidth", calib::rate_text(memory.value), "rig.memory", memory),
           entry("adam_rate", calib::number_text(adam.value), "rig.adam", adam),
           entry("cast_rate", calib::number_text(cast.value), "rig.cast", cast),
           entry("copy_rate", calib::rate_text(copy.value), "rig.copy", copy)}};
}

// By how much reading and writing at once costs more than the two in turn, from rows in which both
// run free: c = 1 / (r / R + w / W), at least 1. Rates of mixed traffic are the pure ones over c. A
// line through few points that are as near as these tells less (calib/node/path.cpp).
void add_mixed(Section& section, const Measurements& m, const Told& told, const std::string& path) {
  const Estimate read = told.of(path + ".read"), write = told.of(path + ".write");
  std::vector<double> costs;
  for (const calib::RowResult* r : calib::rows_of(m, path + ".mixed_read")) {
    for (const calib::RowResult* w : calib::rows_of(m, path + ".mixed_write")) {
      if (w->row.at != r->row.at || calib::coordinate(r->row, "write_cap") <= 0) continue;
      costs.push_back(
          1 / (calib::estimate(*r).value / read.value + calib::estimate(*w).value / write.value));
    }
  }
  if (costs.empty()) return;  // the reader assumes the pure rates, and says so
  const double cost = std::max(1.0, calib::median(costs));
  const auto add = [&](const char* key, const Estimate& pure) {
    section.entries.push_back(
        {.key = key,
         .text = calib::rate_text(pure.value / cost),
         .source = fmt::format("measured beside the cases: reads and writes at once take {:.2f} "
                               "times what they take in turn",
                               cost),
         .uncertainty = pure.spread});
  };
  add("read_mixed", read);
  add("write_mixed", write);
}

// Calibration's own section of a path, without what it says of the file system.
Section path_section(const Measurements& m, const Told& told, const std::string& measured,
                     const NativePath& path) {
  const calib::StorageTarget target{measured, path.folder, rig::file_system_of(path.folder)};
  std::vector<std::string> missing;
  Section section = calib::path_section(m, target, missing);
  if (!missing.empty()) told.missing(missing.front());
  constexpr std::array left_out = {"count",  "name",       "capacity",
                                   "shared", "read_mixed", "write_mixed"};
  std::erase_if(section.entries, [&](const Entry& e) {
    return std::ranges::find(left_out, e.key) != left_out.end();
  });
  for (Entry& e : section.entries) {
    const std::string quantity = measured + "." + (e.key == "latency" ? "latency_read" : e.key);
    if (!calib::rows_of(m, quantity).empty()) e.uncertainty = told.of(quantity).spread;
  }
  add_mixed(section, m, told, measured);
  section.key = "paths." + path.name;
  return section;
}

// Of a value as a profile writes it.
std::string text_of(const Entry& e) {
  if (e.kind == Entry::Kind::plain) return e.text;
  std::string text =
      fmt::format("{{{}: {}, {}: {}", e.kind == Entry::Kind::points ? "points" : "value", e.text,
                  e.is_assumed ? "assumed" : "source", yaml::word(e.source));
  if (e.uncertainty > 0) text += fmt::format(", uncertainty: {:.2g} %", 100 * e.uncertainty);
  return text + "}";
}

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

Measurements measure_rates(const RateOptions& options) {
  calib::Setup setup = setup_of(options);
  std::vector<std::unique_ptr<calib::Bench>> benches;
  benches.push_back(make_engine_bench(setup));
  for (const NativePath& path : measured_paths(options.paths)) {
    rig::check_space(path.folder, setup.file_size);
    setup.storage = {{path.name, path.folder, rig::file_system_of(path.folder)}};
    benches.push_back(make_drive_bench(setup));
  }
  calib::Protocol protocol{.passes = 1, .block = Seconds(0.4), .seed = options.seed};
  protocol.is_gated = options.is_gated;
  protocol.write_budget = setup.write_budget.value() * static_cast<double>(benches.size());
  Measurements m = calib::measure(benches, {}, protocol, {}, options.progress);
  if (!m.is_complete) throw rig::Interrupted("stopped while measuring");
  return m;
}

bool is_whole(const Measurements& m) {
  return std::ranges::none_of(m.rows, [](const calib::RowResult& row) {
    return !row.faults.empty() || calib::block_values(row).empty();
  });
}

Rates rates_of(const Measurements& m, const std::vector<NativePath>& paths, Spread spread) {
  const Told told(m, spread);
  Rates rates = {device_section(m, told), host_section(told)};
  const std::vector<NativePath> measured = measured_paths(paths);
  for (const NativePath& path : paths) {
    rates.push_back(path_section(m, told, measured_as(measured, path), path));
  }
  return rates;
}

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

std::vector<Override> overrides_of(const Rates& rates) {
  std::vector<Override> overrides;
  for (const Section& section : rates) {
    for (const Entry& e : section.entries) {
      overrides.emplace_back("machine." + section.key + "." + e.key, text_of(e));
    }
  }
  return overrides;
}

}  // namespace tidegate
