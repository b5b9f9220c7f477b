#include "sim/policy/optimizers.hpp"

#include <fmt/core.h>

#include "sim/policy/parameters.hpp"
#include "sim/policy/swapped_optimizer.hpp"

namespace tidegate {

SwapOptions read_zero_infinity(yaml::Map& options, const Machine& machine) {
  SwapOptions o;
  const auto path = read_path(options.at("path"), machine);
  o.paths = {path.value_or(0)};
  o.shares = {1};
  o.is_exclusive = {false};
  read_swap_options(options, o);
  o.title = fmt::format("ZeRO-Infinity: optimizer on {}, {} of {} elements{}",
                        path ? machine.paths()[*path].name : "", buffers_text(o), o.sub_group_size,
                        o.is_read_pipelined && o.is_write_pipelined ? "" : ", not pipelined");
  return o;
}

std::unique_ptr<OptimizerPolicy> make_zero_infinity(yaml::Map& options, const Machine& machine) {
  return swapped_optimizer(read_zero_infinity(options, machine));
}

}  // namespace tidegate
