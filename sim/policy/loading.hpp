#pragma once

#include <cstdint>

#include "models/base/units.hpp"
#include "models/base/yaml.hpp"
#include "models/work.hpp"

/// How every rank comes by its first parameters, and what that takes of host memory before the
/// first iteration. It takes no time here.
namespace tidegate {

class Step;

struct Loading {
  /// unseen: start-up is not looked at. Per rank, P parameters of `dtype`, F the checkpoint's
  /// largest file:
  ///   from_config        P: the network with random values
  ///   from_pretrained    2 P: the network and the whole checkpoint beside it
  ///   low_cpu_mem_usage  P + F: an empty network, filled file by file
  ///   zero_init          F: parameters are partitioned as they are created; files are read whole
  /// Source: transformers documentation 4.20, "Instantiating a big model"; every rank does so by
  /// itself.
  enum class Method : std::uint8_t {
    unseen,
    from_config,
    from_pretrained,
    low_cpu_mem_usage,
    zero_init
  };
  Method method = Method::unseen;
  DType dtype = DType::fp32;  ///< of whole copies on the host
  Bytes largest_file;         ///< of the checkpoint

  Bytes model_copy(std::int64_t parameters) const;  ///< of the network, on each rank
  Bytes checkpoint(std::int64_t parameters) const;  ///< read at the same time, on each rank
};

/// The `loading:` section: {method, dtype, checkpoint_file}. `stage` is ZeRO's.
Loading read_loading(const yaml::Node& node, std::int64_t stage);

/// Adds what the setting's loading holds on the host, task by task. ZeRO 1 and 2 then flatten the
/// 16-bit parameters in host memory: each rank holds them twice (DeepSpeed stage_1_and_2.py, the
/// copies of param.cpu_data and the flat buffer made of them).
void add_loading(Step& step);

}  // namespace tidegate
