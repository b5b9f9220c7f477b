#include <array>
#include <string_view>

#include "sim/policy/optimizers.hpp"

namespace tidegate {
namespace {

// What an optimizer keeps beside the 16-bit parameters and gradients, and moves per parameter.
//   adam   p, m, v in fp32; reads them and the gradient, writes them and the 16-bit parameter
//   sgd    nothing, or an fp32 parameter: reads it (or the 16-bit one) and the gradient, writes it
//          (and the 16-bit one)
struct Algorithm {
  const char* task;
  double state_bytes, traffic;
};
constexpr Algorithm adam = {"adam on gpu", 12, 28};
constexpr Algorithm sgd = {"sgd on gpu", 4, 12};
constexpr Algorithm sgd_16 = {"sgd on gpu", 0, 6};
// Elements per launch of the multi-tensor kernel. assumed: one launch a sub-group of 1e8 elements.
constexpr std::int64_t elements_per_launch = 100'000'000;

class ResidentOptimizer final : public OptimizerPolicy {
 public:
  explicit ResidentOptimizer(const Algorithm& algorithm) : algorithm_(algorithm) {}

  void prepare(Step& step) override {
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      const Bytes states(algorithm_.state_bytes * static_cast<double>(owned(step, r)));
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
    step.on_gpu(algorithm_.task, rank, -1,
                {Elementwise{Bytes(algorithm_.traffic * static_cast<double>(n)), launches}}, {});
  }

  bool stays_on_gpu() const override { return true; }
  std::string describe() const override { return "optimizer on the GPU"; }

 private:
  Algorithm algorithm_;

  // Stage 0 keeps and updates everything on every rank.
  static std::int64_t owned(const Step& step, std::uint16_t rank) {
    if (step.setting().zero.stage > 0) return step.shard_of_all(rank);
    std::int64_t all = 0;
    for (const Layer& layer : step.graph_of(rank).layers) all += layer.parameters();
    return all;
  }
};

}  // namespace

std::unique_ptr<OptimizerPolicy> make_resident_optimizer(yaml::Map& options, const Machine&) {
  constexpr std::array<std::string_view, 2> algorithms = {"adam", "sgd"};
  const bool is_sgd = options.choice_or("algorithm", algorithms, 0) == 1;
  const bool has_master = options.flag_or("fp32_master", true);
  if (!is_sgd && !has_master) {
    options.at("fp32_master").problem("is for sgd; adam keeps an fp32 parameter, leave it out");
  }
  return std::make_unique<ResidentOptimizer>(!is_sgd ? adam : has_master ? sgd : sgd_16);
}

}  // namespace tidegate
