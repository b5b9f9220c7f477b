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
#include "validate/native/drive_bench.hpp"
#include "validate/native/engine_bench.hpp"

namespace tidegate {
namespace {

using calib::Entry;
using calib::Estimate;
using calib::Measurements;
using calib::Section;

constexpr double gib = 1024. * 1024 * 1024;

// The first path of each device.
std::vector<NativePath> measured_paths(const std::vector<NativePath>& paths) {
  std::vector<NativePath> first;
  std::vector<std::string> seen;
  for (const NativePath& path : paths) {
    const std::string device = device_of(path);
    if (std::ranges::find(seen, device) != seen.end()) continue;
    seen.push_back(device);
    first.push_back(path);
  }
  return first;
}

// The path among those measured that shares the device.
const std::string& measured_as(const std::vector<NativePath>& measured, const NativePath& path) {
  const auto same = std::ranges::find(measured, device_of(path), device_of);
  ensure(same != measured.end(), "one path of every device is measured");
  return same->name;
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

}  // namespace

std::string device_of(const NativePath& path) {
  const std::string device = rig::file_system_of(path.folder).device;
  return device.empty() ? path.folder : device;
}

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
