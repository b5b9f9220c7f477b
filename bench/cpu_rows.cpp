// Rows of the CPU and memory benches, measured at once and without gates, to be held beside other
// programs.
//
//   cpu_rows BENCH… [only=QUANTITY] [effort=quick|standard|full] [threads=N] [samples=5]
//
// One line per row: quantity, coordinates, median, least and greatest of the samples, verified.
#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "bench/measure.hpp"
#include "calib/measure/bench.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

Effort effort_of(const std::string& name) {
  if (name == "full") return Effort::full;
  return name == "standard" ? Effort::standard : Effort::quick;
}

void measure(Bench& bench, std::size_t row, const Row& what, int samples) {
  bench.sample(row);
  std::vector<double> values;
  bool is_verified = true;
  for (int i = 0; i < samples; ++i) {
    const Sample sample = bench.sample(row);
    values.push_back(sample.value);
    is_verified = is_verified && sample.is_verified;
  }
  std::ranges::sort(values);
  std::string at;
  for (const auto& [name, value] : what.at) at += fmt::format(" {}={:.0f}", name, value);
  fmt::print("quantity={}{} median={:.6g} least={:.6g} most={:.6g} ceiling={:.4g} verified={}\n",
             what.quantity, at, values[values.size() / 2], values.front(), values.back(),
             what.ceiling, is_verified ? 1 : 0);
}

int run(int argc, char** argv) {
  const std::vector<std::string> names = bench::words_of(argc, argv);
  const std::string only = bench::option(argc, argv, "only", "");
  const int samples = std::stoi(bench::option(argc, argv, "samples", "5"));
  Setup setup;
  setup.host = rig::host_facts();
  setup.effort = effort_of(bench::option(argc, argv, "effort", "quick"));
  setup.threads =
      std::stoi(bench::option(argc, argv, "threads", std::to_string(setup.host.logical_cores)));
  for (const BenchEntry& entry : bench_table()) {
    if (std::ranges::find(names, entry.name) == names.end()) continue;
    if (const std::string reason = entry.why_not(setup); !reason.empty()) {
      fmt::print("{} left out: {}\n", entry.name, reason);
      continue;
    }
    const auto one = entry.make(setup);
    const std::vector<Row> rows = one->rows();
    one->prepare();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (only.empty() || rows[i].quantity == only) measure(*one, i, rows[i], samples);
    }
    one->finish();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
  }
}
