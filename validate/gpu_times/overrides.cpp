#include <algorithm>

#include <fmt/core.h>

#include "validate/gpu_times/factors.hpp"

namespace tidegate {
namespace {

Curve scaled_curve(const Curve& curve, double scale) {
  if (curve.empty()) return curve;
  // The reader of profiles takes efficiencies from 1e-6 to 1.
  auto points = curve.points();
  for (auto& [x, y] : points) y = std::clamp(scale * y, 1e-6, 1.0);
  return Curve(std::move(points));
}

std::string text_of(const Curve& curve, const char* unit, const std::string& why) {
  const std::string assumed = "assumed: " + yaml::word(why) + "}";
  if (curve.points().size() == 1)
    return fmt::format("{{value: {}, {}", curve.points().front().second, assumed);
  std::string points;
  for (const auto& [x, y] : curve.points())
    points += fmt::format("{}[{} {}, {}]", points.empty() ? "" : ", ", x, unit, y);
  return fmt::format("{{points: [{}], {}", points, assumed);
}

}  // namespace

Gpu scaled(Gpu gpu, const Scales& scales) {
  gpu.gemm_efficiency = scaled_curve(gpu.gemm_efficiency, scales.product);
  gpu.attention_efficiency = scaled_curve(gpu.attention_efficiency, scales.attention);
  gpu.gemm_efficiency_32 = scaled_curve(gpu.gemm_efficiency_32, scales.product);
  gpu.attention_efficiency_32 = scaled_curve(gpu.attention_efficiency_32, scales.attention);
  gpu.memory_efficiency = scaled_curve(gpu.memory_efficiency, scales.memory);
  return gpu;
}

std::vector<Override> efficiency_overrides(const Gpu& gpu, const GpuTimes& times) {
  struct Key {
    KernelClass kind;
    const char *key, *unit;
    const Curve& curve;
  };
  const Key keys[] = {
      {KernelClass::matrix_product, "gemm_efficiency", "FLOP", gpu.gemm_efficiency},
      {KernelClass::attention, "attention_efficiency", "FLOP", gpu.attention_efficiency},
      {KernelClass::matrix_product, "gemm_efficiency_32", "FLOP", gpu.gemm_efficiency_32},
      {KernelClass::attention, "attention_efficiency_32", "FLOP", gpu.attention_efficiency_32},
      {KernelClass::elementwise, "memory_efficiency", "B", gpu.memory_efficiency}};
  std::vector<Override> overrides;
  for (const Key& k : keys) {
    const ClassFit& c = times.classes[static_cast<std::size_t>(k.kind)];
    if (k.curve.empty() || c.predicted <= 0 || c.measured <= 0) continue;
    const std::string why = fmt::format(
        "the profile's curve times {:.3f}, at most 1, so that {} take what they take in "
        "{}",
        c.scale, name_of(k.kind), times.trace.file);
    overrides.emplace_back(std::string("machine.gpus.") + k.key,
                           text_of(scaled_curve(k.curve, c.scale), k.unit, why));
  }
  return overrides;
}

}  // namespace tidegate
