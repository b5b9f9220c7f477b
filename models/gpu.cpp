#include "models/devices.hpp"

#include <algorithm>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

double elements(const Gemm& g) {
  const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n),
             k = static_cast<double>(g.k);
  return static_cast<double>(g.batch) * (m * k + k * n + m * n);
}

// Forward: q, k, v in, o out. Backward: those and do in, dq, dk, dv out, which is twice as much.
double elements(const Attention& a) {
  const double per_query_head = static_cast<double>(a.batch * a.queries * a.head_dim);
  const double per_key_head = static_cast<double>(a.batch * a.keys * a.head_dim);
  const double forward = 2 * static_cast<double>(a.heads) * per_query_head +
                         2 * static_cast<double>(a.kv_heads) * per_key_head;
  return a.backward ? 2 * forward : forward;
}

struct Traffic {
  Bytes operator()(const Gemm& g) const { return Bytes(elements(g) * bytes_per_element(g.dtype)); }
  Bytes operator()(const Attention& a) const {
    return Bytes(elements(a) * bytes_per_element(a.dtype));
  }
  Bytes operator()(const Elementwise& e) const { return e.bytes; }
};

struct Arithmetic {
  const Gpu& gpu;
  Seconds operator()(const Gemm& g) const {
    return at(g, g.dtype, of(g.dtype, gpu.gemm_efficiency_32, gpu.gemm_efficiency));
  }
  Seconds operator()(const Attention& a) const {
    return at(a, a.dtype, of(a.dtype, gpu.attention_efficiency_32, gpu.attention_efficiency));
  }
  Seconds operator()(const Elementwise&) const { return Seconds(0); }

 private:
  static const Curve& of(DType dtype, const Curve& single, const Curve& usual) {
    return dtype == DType::fp32 && !single.empty() ? single : usual;
  }
  Seconds at(const Kernel& kernel, DType dtype, const Curve& efficiency) const {
    const Flops flops = flops_of(kernel);
    if (flops == Flops(0)) return Seconds(0);
    return flops / (gpu.peak(dtype) * efficiency.at(flops.value()));
  }
};

}  // namespace

FlopsPerSecond Gpu::peak(DType dtype) const {
  switch (dtype) {
    case DType::fp32:
      return peak_32;
    case DType::bf16:
    case DType::fp16:
      return peak_16;
    case DType::fp8:
      return peak_8 > FlopsPerSecond(0) ? peak_8 : peak_16;
  }
  ensure(false, "every data type has a peak");
  return peak_16;
}

Bytes Gpu::memory_traffic(const Kernel& kernel) const { return std::visit(Traffic{}, kernel); }

Seconds Gpu::alone(const Kernel& kernel) const {
  const auto* elementwise = std::get_if<Elementwise>(&kernel);
  const double launches = elementwise ? std::max(1, elementwise->launches) : 1;
  const Bytes traffic = memory_traffic(kernel);
  Seconds busy = std::visit(Arithmetic{*this}, kernel);
  if (traffic > Bytes(0)) {
    const double efficiency = memory_efficiency.at(traffic.value() / launches);
    busy = std::max(busy, traffic / (memory_bandwidth * efficiency));
  }
  return busy + launches * launch;
}

}  // namespace tidegate
