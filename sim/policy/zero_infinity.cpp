#include "sim/policy/optimizers.hpp"
#include "sim/policy/parameters.hpp"
#include "sim/policy/swapped_optimizer.hpp"

namespace tidegate {

std::unique_ptr<OptimizerPolicy> make_zero_infinity(yaml::Map& options, const Machine& machine) {
  SwapOptions o;
  o.title = "ZeRO-Infinity: optimizer on one storage path";
  o.paths = {read_path(options.at("path"), machine)};
  o.shares = {1};
  o.is_exclusive = {false};
  read_swap_options(options, o);
  return swapped_optimizer(std::move(o));
}

}  // namespace tidegate
