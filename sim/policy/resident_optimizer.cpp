#include "sim/policy/optimizers.hpp"

#include <algorithm>
#include <optional>

namespace tidegate {
namespace {

// Fused Adam with fp32 master weights: reads p, m, v (fp32) and the 16-bit gradient, writes p, m, v
// and the 16-bit parameter. Without them it reads p, m, v and the gradient and writes p, m, v, all
// of the parameters' type.
constexpr double adam_traffic = 28;
constexpr double state_bytes = 12;
constexpr double words_moved_without_master = 7;
// Elements per launch of the multi-tensor kernel. assumed: one launch a sub-group of 1e8 elements.
constexpr std::int64_t elements_per_launch = 100'000'000;
// Elements of a shard in one Adam call: DeepSpeed's default of sub_group_size.
constexpr std::int64_t default_sub_group = 1'000'000'000;

class ResidentOptimizer final : public OptimizerPolicy {
 public:
  explicit ResidentOptimizer(std::optional<bool> has_master) : asked_master_(has_master) {}

  void prepare(Step& step) override {
    const DType dtype = step.graph().dtype;
    has_master_ = asked_master_.value_or(dtype != DType::fp32);
    element_ = bytes_per_element(dtype);
    const double per_parameter = has_master_ ? state_bytes : 2 * element_;
    const Bytes states(per_parameter * static_cast<double>(owned(step)));
    const Bytes partition(element_ * static_cast<double>(owned(step)));
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      step.reserve(step.gpu_pool(r), "optimizer states", states);
      if (step.setting().zero.stage >= 2)
        step.reserve(step.gpu_pool(r), "gradient partition", partition);
    }
  }

  void gradients(Step&, std::uint16_t, const Bucket&, TaskId) override {}

  void update(Step& step, std::uint16_t rank, const ParameterPolicy&) override {
    Rank& r = step.rank(rank);
    if (r.gradient) r.compute.also(*r.gradient);
    const std::int64_t n = owned(step);
    const double traffic = has_master_ ? adam_traffic : words_moved_without_master * element_;
    const auto launches = static_cast<std::int32_t>(n / elements_per_launch + 1);
    step.on_gpu("adam on gpu", rank, -1,
                {Elementwise{Bytes(traffic * static_cast<double>(n)), launches}}, {},
                fp32_gradients(step, rank, n));
  }

  std::string describe() const override { return "optimizer on the GPU"; }

 private:
  // ZeRO gives Adam an fp32 copy of its 16-bit gradients: of the whole partition (DeepSpeed
  // stage_1_and_2.py), or of one sub-group after the other (stage3.py).
  std::vector<Effect> fp32_gradients(Step& step, std::uint16_t rank, std::int64_t n) const {
    const std::int64_t stage = step.setting().zero.stage;
    if (stage == 0 || !has_master_ || step.graph().dtype == DType::fp32) return {};
    const std::int64_t at_once = stage == 3 ? std::min(n, default_sub_group) : n;
    const BufferId copy =
        step.plan().buffer(step.gpu_pool(rank), step.plan().owner("fp32 gradients"),
                           Bytes(4.0 * static_cast<double>(at_once)));
    return {allocate(copy), free(copy)};
  }

  // Stage 0 keeps and updates everything on every rank.
  static std::int64_t owned(const Step& step) {
    if (step.setting().zero.stage > 0) return step.shard_of_all();
    std::int64_t all = 0;
    for (const Layer& layer : step.setting().graph.layers) all += layer.parameters();
    return all;
  }

  std::optional<bool> asked_master_;
  bool has_master_ = true;
  double element_ = 2;  // bytes of a parameter
};

}  // namespace

std::unique_ptr<OptimizerPolicy> make_resident_optimizer(yaml::Map& options, const Machine&) {
  const auto master = options.find("master_weights");
  return std::make_unique<ResidentOptimizer>(master ? std::optional(master->flag()) : std::nullopt);
}

}  // namespace tidegate
