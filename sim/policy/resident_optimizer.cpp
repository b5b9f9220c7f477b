#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "sim/policy/bindings.hpp"
#include "sim/policy/optimizers.hpp"

namespace tidegate {
namespace {

// What an optimizer keeps beside the 16-bit parameters and gradients, and moves per parameter, with
// e bytes a parameter:
//   adam   fp32 p, m, v; reads them and the gradient, writes them and the parameter. Without master
//          weights m, v of the parameters' type; reads p, m, v and the gradient, writes p, m, v
//   sgd    fp32 p, likewise; without master weights nothing; reads p and the gradient, writes p
struct Algorithm {
  const char* task;
  std::int64_t states;  ///< beside the parameter itself
  constexpr double state_bytes(bool has_master, double e) const {
    const auto n = static_cast<double>(states);
    return has_master ? 4 * (n + 1) : n * e;
  }
  constexpr double traffic(bool has_master, double e) const {
    const auto n = static_cast<double>(states);
    return has_master ? 8 * (n + 1) + 2 * e : (2 * (n + 1) + 1) * e;
  }
};
constexpr Algorithm adam = {"adam on gpu", 2};
constexpr Algorithm sgd = {"sgd on gpu", 0};
// Elements per launch of the multi-tensor kernel. assumed: one launch a sub-group of 1e8 elements.
constexpr std::int64_t elements_per_launch = 100'000'000;
// Elements of a shard in one Adam call: DeepSpeed's default of sub_group_size.
constexpr std::int64_t default_sub_group = 1'000'000'000;

class ResidentOptimizer final : public OptimizerPolicy {
 public:
  ResidentOptimizer(const Algorithm& algorithm, std::optional<bool> has_master)
      : algorithm_(algorithm), asked_master_(has_master) {}

  void prepare(Step& step) override {
    const DType dtype = step.graph().dtype;
    has_master_ = asked_master_.value_or(dtype != DType::fp32);
    element_ = bytes_per_element(dtype);
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      const auto n = static_cast<double>(owned(step, r));
      const Bytes states(algorithm_.state_bytes(has_master_, element_) * n);
      const Bytes partition(element_ * n);
      step.reserve(step.gpu_pool(r), "optimizer states", states);
      if (step.setting().zero.stage >= 2)
        step.reserve(step.gpu_pool(r), "gradient partition", partition);
      if (step.bindings != nullptr) stand(step, r);
    }
  }

  void gradients(Step& step, std::uint16_t rank, const Bucket& bucket, TaskId reduced) override {
    if (step.bindings == nullptr) return;
    const bool is_first = step.setting().zero.stage < 2 || bucket.micro_step == 0;
    const PoolId gpu = step.gpu_pool(rank);
    step.bindings->added(reduced, step.bindings->tensors_of(bucket), rank, is_first, gpu,
                         Content::Kind::sum, gpu);
  }

  void update(Step& step, std::uint16_t rank, const ParameterPolicy& parameters) override {
    if (step.bindings != nullptr && !parameters.stays_on_gpu())
      Bindings::refuse("an update on the GPU that nothing brings to where parameters live");
    Rank& r = step.rank(rank);
    if (r.gradient) r.compute.also(*r.gradient);
    const std::int64_t n = owned(step, rank);
    const TaskId task =
        step.on_gpu(algorithm_.task, rank, -1, {kernels(n)}, {}, fp32_gradients(step, rank, n));
    if (step.bindings == nullptr) return;
    using Kind = Content::Kind;
    const Kind written[] = {step.setting().zero.stage == 0 ? Kind::parameter : Kind::shard};
    step.bindings->updated(task, step.bindings->all_tensors(rank), rank, step.gpu_pool(rank),
                           Kind::sum, written);
  }

  void add_least(const Step& step, std::uint16_t rank, LeastWork& least) const override {
    least.update.emplace_back(Compute{rank, {kernels(owned(step, rank))}});
  }

  bool stays_on_gpu() const override { return true; }
  std::string describe() const override { return "optimizer on the GPU"; }

 private:
  void stand(Step& step, std::uint16_t rank) const {
    using Kind = Content::Kind;
    const bool is_adam = algorithm_.states > 0;
    // In fp32 the parameters are the master, whatever it is called.
    const bool keeps_master = has_master_ || element_ >= 4;
    step.bindings->updates(
        {.rule = is_adam ? Update::Rule::adam : Update::Rule::sgd, .keeps_master = keeps_master});
    const auto tensors = step.bindings->all_tensors(rank);
    const PoolId gpu = step.gpu_pool(rank);
    const std::int64_t stage = step.setting().zero.stage;
    if (keeps_master) step.bindings->stands(Kind::master, tensors, rank, gpu);
    if (is_adam) step.bindings->stands(Kind::moments, tensors, rank, gpu);
    // The owner's slice of the whole parameters; in stage 3 it stands anyway, and in 0 it is all.
    const bool has_slice = stage == 1 || stage == 2;
    if (!keeps_master && has_slice) step.bindings->stands(Kind::shard, tensors, rank, gpu);
  }

  Elementwise kernels(std::int64_t n) const {
    const double traffic = algorithm_.traffic(has_master_, element_);
    return {Bytes(traffic * static_cast<double>(n)),
            static_cast<std::int32_t>(n / elements_per_launch + 1)};
  }

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
  static std::int64_t owned(const Step& step, std::uint16_t rank) {
    if (step.setting().zero.stage > 0) return step.shard_of_all(rank);
    std::int64_t all = 0;
    for (const Layer& layer : step.graph_of(rank).layers) all += layer.parameters();
    return all;
  }

  Algorithm algorithm_;
  std::optional<bool> asked_master_;
  bool has_master_ = true;
  double element_ = 2;  // bytes of a parameter
};

}  // namespace

std::unique_ptr<OptimizerPolicy> make_resident_optimizer(yaml::Map& options, const Machine&) {
  constexpr std::array<std::string_view, 2> algorithms = {"adam", "sgd"};
  const bool is_sgd = options.choice_or("algorithm", algorithms, 0) == 1;
  const auto master = options.find("master_weights");
  return std::make_unique<ResidentOptimizer>(is_sgd ? sgd : adam,
                                             master ? std::optional(master->flag()) : std::nullopt);
}

}  // namespace tidegate
