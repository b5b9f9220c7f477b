#include "calib/node/curves.hpp"
#include "models/work.hpp"

namespace tidegate::calib {
namespace {

double attention_flops(const Row& row) {  // half of 4·heads·tokens²·dim, for causality
  const double tokens = coordinate(row, "tokens");
  return 2 * coordinate(row, "heads") * coordinate(row, "dim") * tokens * tokens;
}

Rows of_type(const Measurements& m, const char* quantity, const Setup& setup, DType type) {
  return with(with(rows_of(m, quantity), "threads", setup.threads), "dtype",
              static_cast<double>(type));
}

// Peak and efficiencies of one type of operands; `suffix` of the keys of its curves.
void add_curves(SectionWriter& out, const Rows& products, const Rows& attentions, double peak,
                const std::string& suffix) {
  out.add(curve("gemm_efficiency" + suffix, products, in_mflop(product_flops), peak,
                "measured: gemm over its fastest shape"));
  const Rows in_cache = with(attentions, "scores", 1);
  Entry attention =
      in_cache.empty()
          ? curve("attention_efficiency" + suffix, products, in_mflop(product_flops), peak,
                  "as matrix products of the same size")
          : curve("attention_efficiency" + suffix, in_cache, in_mflop(attention_flops), peak,
                  "measured: attention with scores in a cache, over the fastest product");
  attention.is_assumed = in_cache.empty();
  out.add(std::move(attention));
}

void add_compute(SectionWriter& out, const Measurements& m, const Setup& setup) {
  const Rows single = of_type(m, "gemm", setup, DType::fp32);
  const Rows half = of_type(m, "gemm", setup, DType::bf16);
  const auto best = fastest(single), best_half = fastest(half);
  out.measured("peak_32", best, "gemm in fp32, the fastest shape", flops_text);
  if (!best) return;
  const Rows attentions = of_type(m, "attention", setup, DType::fp32);
  // A library that computes 16 bits by fp32 products and conversions is slower than fp32.
  if (!best_half || best_half->value <= best->value) {
    out.assumed("peak_16", flops_text(best->value),
                best_half ? "products of 16 bits are slower than those of fp32, and taken for those"
                          : "products of 16 bits run as those of fp32");
    return add_curves(out, single, attentions, best->value, "");
  }
  out.measured("peak_16", best_half, "gemm in bf16, the fastest shape", flops_text);
  add_curves(out, half, of_type(m, "attention", setup, DType::bf16), best_half->value, "");
  add_curves(out, single, attentions, best->value, "_32");
}

void add_copies(SectionWriter& out, const Measurements& m) {
  const auto copies = with(rows_of(m, "host_copy"), "threads", 1);
  const auto copy = plateau(copies, bytes_of);
  out.measured("h2d", copy, "host_copy", rate_text);
  out.measured("d2h", copy, "host_copy", rate_text);
  add_copy_half_size(out, copies, "host_copy");
}

}  // namespace

Section cpu_device_section(const Measurements& m, const Setup& setup,
                           std::vector<std::string>& missing) {
  SectionWriter out("gpus", missing);
  out.plain("count", "1");
  out.plain("name", "\"the CPU as the device that computes: " + setup.host.cpu + "\"");
  out.assumed("memory", size_text(setup.host.memory.value() / 2),
              "half of the host's memory stands for the device's");
  out.assumed("context", "0 B", "no CUDA context");
  add_compute(out, m, setup);
  add_memory_bandwidth(out, m, setup);
  out.told("memory_efficiency", "1", "memory_bandwidth is what a kernel reaches");
  out.assumed("launch", "5 us", "a call into the BLAS and its threads");
  add_copies(out, m);
  out.assumed("pageable_factor", "1", "all of it is host memory");
  return out.finish();
}

}  // namespace tidegate::calib
