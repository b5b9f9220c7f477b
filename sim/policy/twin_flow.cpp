#include "sim/policy/optimizers.hpp"
#include "sim/policy/zero_offload.hpp"

namespace tidegate {

ZeroOffloadOptions read_twin_flow(yaml::Map& options) {
  ZeroOffloadOptions o;
  o.host_share = options.at("ratio").fraction();
  o.sub_group_size = options.count_or("sub_group_size", o.sub_group_size, 1);
  o.is_pinned = options.flag_or("pin_memory", o.is_pinned);
  return o;
}

std::unique_ptr<OptimizerPolicy> make_twin_flow(yaml::Map& options, const Machine&) {
  return zero_offload(read_twin_flow(options));
}

}  // namespace tidegate
