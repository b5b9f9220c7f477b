#include "sim/policy/optimizers.hpp"

namespace tidegate {
namespace {

// Fused Adam: reads p, m, v (fp32) and the 16-bit gradient, writes p, m, v and the 16-bit
// parameter.
constexpr double adam_traffic = 28;
constexpr double state_bytes = 12;
// Elements per launch of the multi-tensor kernel. assumed: one launch a sub-group of 1e8 elements.
constexpr std::int64_t elements_per_launch = 100'000'000;

class ResidentOptimizer final : public OptimizerPolicy {
 public:
  void prepare(Step& step) override {
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      const Bytes states(state_bytes * static_cast<double>(owned(step, r)));
      const Bytes partition(2.0 * static_cast<double>(owned(step, r)));
      step.reserve(step.gpu_pool(r), "optimizer states", states);
      if (step.setting().zero.stage >= 2)
        step.reserve(step.gpu_pool(r), "gradient partition", partition);
    }
  }

  void gradients(Step&, std::uint16_t, const Bucket&, TaskId) override {}

  void update(Step& step, std::uint16_t rank, const ParameterPolicy&) override {
    Rank& r = step.rank(rank);
    if (r.gradient) r.compute.also(*r.gradient);
    const std::int64_t n = owned(step, rank);
    const auto launches = static_cast<std::int32_t>(n / elements_per_launch + 1);
    step.on_gpu("adam on gpu", rank, -1,
                {Elementwise{Bytes(adam_traffic * static_cast<double>(n)), launches}}, {});
  }

  bool stays_on_gpu() const override { return true; }
  std::string describe() const override { return "optimizer on the GPU"; }

 private:
  // Stage 0 keeps and updates everything on every rank.
  static std::int64_t owned(const Step& step, std::uint16_t rank) {
    if (step.setting().zero.stage > 0) return step.shard_of_all(rank);
    std::int64_t all = 0;
    for (const Layer& layer : step.graph_of(rank).layers) all += layer.parameters();
    return all;
  }
};

}  // namespace

std::unique_ptr<OptimizerPolicy> make_resident_optimizer(yaml::Map&, const Machine&) {
  return std::make_unique<ResidentOptimizer>();
}

}  // namespace tidegate
