#include "sim/policy/loading.hpp"

#include <array>

#include <fmt/core.h>

#include "sim/policy/step.hpp"

namespace tidegate {
namespace {

constexpr std::array<std::string_view, 4> methods = {"from_config", "from_pretrained",
                                                     "low_cpu_mem_usage", "zero_init"};
constexpr std::array<std::string_view, 3> dtypes = {"fp32", "bf16", "fp16"};
constexpr std::array dtype_values = {DType::fp32, DType::bf16, DType::fp16};

}  // namespace

Bytes Loading::model_copy(std::int64_t parameters) const {
  if (method == Method::unseen || method == Method::zero_init) return Bytes(0);
  return Bytes(bytes_per_element(dtype) * static_cast<double>(parameters));
}

Bytes Loading::checkpoint(std::int64_t parameters) const {
  if (method == Method::from_pretrained) return model_copy(parameters);
  return largest_file;
}

Loading read_loading(const yaml::Node& node, std::int64_t stage) {
  Loading loading;
  yaml::Map map = node.map();
  const yaml::Node method = map.at("method");
  // The table begins behind `unseen`.
  if (!method.is_null()) loading.method = static_cast<Loading::Method>(method.choice(methods) + 1);
  loading.dtype = dtype_values.at(map.choice_or("dtype", dtypes, 0));
  loading.largest_file = map.quantity_or("checkpoint_file", Bytes(0));
  const bool reads_by_file = loading.method == Loading::Method::low_cpu_mem_usage ||
                             loading.method == Loading::Method::zero_init;
  if (map.has("checkpoint_file") && !reads_by_file) {
    map.at("checkpoint_file")
        .problem("applies to low_cpu_mem_usage and zero_init, which read file by file");
  }
  if (loading.method == Loading::Method::zero_init && stage != 3) {
    method.problem(fmt::format("zero_init needs policy.zero.stage 3, which is {}", stage));
  }
  return loading;
}

void add_loading(Step& step) {
  const Setting& setting = step.setting();
  const std::int64_t parameters = setting.graph.parameters;
  if (setting.loading.method == Loading::Method::unseen) return;
  step.at_start("load parameters",
                {{"whole networks", setting.loading.model_copy(parameters)},
                 {"checkpoints being read", setting.loading.checkpoint(parameters)}});
  if (setting.zero.stage != 1 && setting.zero.stage != 2) return;
  const double element = bytes_per_element(setting.graph.dtype);
  const Bytes whole(element * static_cast<double>(parameters));
  step.at_start("flatten parameters", {{"parameters being flattened", 2.0 * whole}});
}

}  // namespace tidegate
