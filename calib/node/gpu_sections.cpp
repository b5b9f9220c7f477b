#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "calib/node/sections.hpp"
#include "calib/node/yaml_text.hpp"

namespace tidegate::calib {
namespace {

using Rows = std::vector<const RowResult*>;
using Curve = std::vector<std::pair<double, double>>;  // size, value

double bytes_of(const Row& row) { return coordinate(row, "bytes"); }
double flops_of(const Row& row) {
  return 2 * coordinate(row, "m") * coordinate(row, "n") * coordinate(row, "k");
}

std::optional<Estimate> fastest(const Rows& rows) {
  std::optional<Estimate> best;
  for (const RowResult* row : rows) {
    const Estimate e = estimate(*row);
    if (!best || e.value > best->value) best = e;
  }
  return best;
}

// Points of value over `whole`; of rows of one size the median.
Entry curve(const std::string& key, const Rows& rows, const std::function<double(const Row&)>& size,
            double whole, const char* unit, double scale, const std::string& source) {
  std::map<double, std::vector<double>> by_size;
  for (const RowResult* row : rows) by_size[size(row->row)].push_back(estimate(*row).value);
  std::string text;
  for (const auto& [at, values] : by_size) {
    text += fmt::format("{}[{:.6g} {}, {:.4f}]", text.empty() ? "" : ", ", at / scale, unit,
                        std::min(1.0, median(values) / whole));
  }
  return {.key = key, .text = "[" + text + "]", .source = source, .kind = Entry::Kind::points};
}

void add_compute(SectionWriter& out, const Measurements& m) {
  // What a framework runs: the algorithm that the heuristic names first.
  const Rows half = with(with(rows_of(m, "gpu.gemm"), "dtype", 16), "pick", 0);
  const Rows single = with(with(rows_of(m, "gpu.gemm"), "dtype", 32), "pick", 0);
  const Rows eight = with(with(rows_of(m, "gpu.gemm"), "dtype", 8), "pick", 0);
  const auto best = fastest(half);
  out.measured("peak_16", best, "gpu.gemm, the fastest shape", flops_text);
  out.measured("peak_32", fastest(single), "gpu.gemm, the fastest shape, without TF32", flops_text);
  if (!eight.empty())
    out.measured("peak_8", fastest(eight), "gpu.gemm, the fastest shape", flops_text);
  if (!best) return;
  out.add(curve("gemm_efficiency", half, flops_of, best->value, "MFLOP", 1e6,
                "measured: gpu.gemm over its fastest shape"));
  Entry attention = curve("attention_efficiency", half, flops_of, best->value, "MFLOP", 1e6,
                          "as matrix products of the same size; no attention kernel was measured");
  attention.is_assumed = true;
  out.add(std::move(attention));
}

void add_memory(SectionWriter& out, const Measurements& m) {
  const Rows triad = with(rows_of(m, "gpu.memory"), "kernel", 0);
  const auto best = fastest(triad);
  out.measured("memory_bandwidth", best, "gpu.memory, triad, the fastest size", rate_text);
  if (best) {
    out.add(curve("memory_efficiency", triad, bytes_of, best->value, "MB", 1e6,
                  "measured: gpu.memory, triad, over its fastest size"));
  }
}

void add_copies(SectionWriter& out, const Measurements& m) {
  for (const std::string direction : {"h2d", "d2h"}) {
    const Rows rows = with(with(rows_of(m, "gpu." + direction), "memory", 1), "by", 0);
    out.measured(direction, plateau(rows, bytes_of), "gpu." + direction + ", pinned", rate_text);
  }
  const Rows both = with(rows_of(m, "gpu.duplex"), "part", 2);
  if (!both.empty()) out.measured("duplex", plateau(both, bytes_of), "gpu.duplex", rate_text);
  const Rows pinned = with(with(rows_of(m, "gpu.h2d"), "memory", 1), "by", 0);
  const Rows pageable = with(rows_of(m, "gpu.h2d"), "memory", 0);
  constexpr std::size_t least = 4;
  if (pinned.size() >= least) {
    const Fit f = fit(Form::half_size, points(pinned, {"bytes"}));
    out.add({.key = "copy_half_size",
             .text = size_text(f.parameter("half")),
             .source = fmt::format("measured: gpu.h2d over sizes, fitted, off by {:.1f} %",
                                   100 * f.residual)});
  }
  const auto fast = plateau(pinned, bytes_of), slow = plateau(pageable, bytes_of);
  if (fast && slow) {
    out.told("pageable_factor", number_text(std::min(1.0, slow->value / fast->value)),
             "measured: gpu.h2d, pageable over pinned");
  }
}

}  // namespace

Section gpu_section(const Measurements& m, const GpuNames& gpus,
                    std::vector<std::string>& missing) {
  SectionWriter out("gpus", missing);
  out.plain("count", fmt::format("{}", gpus.count));
  out.plain("name", scalar_text(gpus.name));
  out.told("memory", size_text(gpus.memory.value()), "CUDA: total memory of the device");
  out.assumed("context", "0.5 GiB", "CUDA context with cuBLAS and NCCL handles; not measured");
  add_compute(out, m);
  add_memory(out, m);
  const Rows dependent = with(rows_of(m, "gpu.launch"), "kind", 1);
  out.measured("launch", dependent.empty() ? std::nullopt : std::optional(estimate(*dependent[0])),
               "gpu.launch, an empty kernel that depends on the one before", time_text);
  add_copies(out, m);
  return out.finish();
}

std::optional<Section> fabric_section(const Measurements& m, std::vector<std::string>& missing) {
  const Rows rows = rows_of(m, "gpu.all_reduce");
  if (rows.empty()) return std::nullopt;
  SectionWriter out("fabric", missing);
  const auto large = plateau(rows, bytes_of);
  out.measured("per_gpu", large, "gpu.all_reduce, bus bandwidth", rate_text);
  out.add(curve("efficiency", rows, bytes_of, large->value, "KiB", 1024,
                "measured: gpu.all_reduce over its plateau"));
  const auto smallest =
      std::ranges::min_element(rows, {}, [](const RowResult* r) { return bytes_of(r->row); });
  const double n = coordinate((*smallest)->row, "ranks");
  const double seconds = 2 * (n - 1) / n * bytes_of((*smallest)->row) / estimate(**smallest).value;
  out.told("latency", time_text(seconds), "measured: gpu.all_reduce of its smallest size");
  return out.finish();
}

}  // namespace tidegate::calib
