#include <algorithm>

#include <fmt/core.h>

#include "calib/node/curves.hpp"
#include "calib/node/yaml_text.hpp"

namespace tidegate::calib {
namespace {

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
  out.add(curve("gemm_efficiency", half, in_mflop(product_flops), best->value,
                "measured: gpu.gemm over its fastest shape"));
  Entry attention = curve("attention_efficiency", half, in_mflop(product_flops), best->value,
                          "as matrix products of the same size; no attention kernel was measured");
  attention.is_assumed = true;
  out.add(std::move(attention));
}

void add_memory(SectionWriter& out, const Measurements& m) {
  const Rows triad = with(rows_of(m, "gpu.memory"), "kernel", 0);
  const auto best = fastest(triad);
  out.measured("memory_bandwidth", best, "gpu.memory, triad, the fastest size", rate_text);
  if (best) {
    out.add(curve("memory_efficiency", triad, {bytes_of, "MB", 1e6}, best->value,
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
  if (!pinned.empty()) add_copy_half_size(out, pinned, "gpu.h2d");
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
  out.add(curve("efficiency", rows, {bytes_of, "KiB", 1024}, large->value,
                "measured: gpu.all_reduce over its plateau"));
  const auto smallest =
      std::ranges::min_element(rows, {}, [](const RowResult* r) { return bytes_of(r->row); });
  const double n = coordinate((*smallest)->row, "ranks");
  const double seconds = 2 * (n - 1) / n * bytes_of((*smallest)->row) / estimate(**smallest).value;
  out.told("latency", time_text(seconds), "measured: gpu.all_reduce of its smallest size");
  return out.finish();
}

}  // namespace tidegate::calib
