#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "calib/bench/canaries.hpp"
#include "calib/cuda/benches.hpp"
#include "calib/run/run.hpp"
#include "calib/storage/storage_bench.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

std::vector<BenchEntry> all_benches() {
  std::vector<BenchEntry> all(bench_table().begin(), bench_table().end());
  all.insert(all.end(), cuda::bench_table().begin(), cuda::bench_table().end());
  return all;
}

void check_names(const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const BenchEntry& entry : all_benches()) names.emplace_back(entry.name);
  for (const std::string& name : only) {
    if (std::ranges::find(names, name) != names.end()) continue;
    const std::string near = nearest(name, names);
    std::string text = "--only: there is no benchmark '" + name + "'; ";
    if (!near.empty()) text += "did you mean '" + near + "'? ";
    text += "there are:";
    for (const std::string& known : names) text += " " + known;
    throw InputError(text);
  }
}

}  // namespace

Selected select(const RunOptions& options, const Setup& setup) {
  check_names(options.only);
  Selected selected;
  std::string left_out;
  for (const BenchEntry& entry : all_benches()) {
    const std::string name(entry.name);
    if (!options.only.empty() && std::ranges::find(options.only, name) == options.only.end()) {
      left_out += (left_out.empty() ? "" : ", ") + name;
      continue;
    }
    if (const std::string why = entry.why_not(setup); !why.empty()) {
      selected.not_measured.emplace_back(name, why);
      continue;
    }
    selected.benches.push_back(entry.make(setup));
    selected.names.push_back(name);
  }
  if (!left_out.empty()) {
    selected.not_measured.emplace_back("only", "left out by --only: " + left_out);
  }
  selected.canaries = cpu_canaries(setup);
  const bool has_storage = options.only.empty() || std::ranges::count(options.only, "storage") > 0;
  if (has_storage && !setup.storage.empty()) {
    std::ranges::move(storage_canaries(setup), std::back_inserter(selected.canaries));
  }
  return selected;
}

Protocol protocol_of(const RunOptions& options, const Setup& setup) {
  Protocol protocol;
  protocol.seed = options.seed;
  protocol.is_gated = options.is_gated;
  protocol.write_budget =
      (setup.write_budget - setup.file_size).value() * static_cast<double>(setup.storage.size());
  switch (options.effort) {
    case Effort::quick:
      protocol.passes = 2;
      protocol.block = Seconds(0.2);
      break;
    case Effort::standard:
      protocol.passes = 3;
      protocol.block = Seconds(1);
      break;
    case Effort::full:
      protocol.passes = 5;
      protocol.block = Seconds(4);
      break;
  }
  if (options.passes > 0) protocol.passes = options.passes;
  return protocol;
}

}  // namespace tidegate::calib
