#pragma once

#include <cstdint>
#include <optional>

#include "sim/policy/adaptive_keep.hpp"
#include "sim/policy/saved_tensors.hpp"
#include "sim/policy/transport.hpp"

/// SSDTrain (arXiv 2408.10013; code: FlashTrain, K-Wu/FlashTrain): saved tensors leave the GPU as
/// soon as they are saved and come back just before backward needs them.
///
/// Leaf modules are the operators of the layer graph. On each rank and micro-batch:
///
///   pack      a tensor that an operator saves stays as it is when it is small or excluded, is kept
///             when it is past the adaptive boundary or of the last module, and is stored otherwise
///   store     FIFO pool of workers; GPU memory is free when the store has ended
///   prefetch  backward visits the operators in reverse, in chunks; when the launch thread reaches
///             a chunk's first operator, loads for the others of the chunk are queued
///   unpack    a tensor whose store has not ended is forwarded: it stays and is not read; else the
///             launch thread waits for its load, or loads it itself
///   release   when the last operator that saved it has run backward
///
/// The launch thread runs ahead of the GPU, so that loads begin before the GPU is there. It waits
/// for the GPU where forward and backward end (the timers of Megatron-LM synchronise).
namespace tidegate {

struct SsdTrainOptions {
  TransportOptions transport;
  StoreScope scope;
  bool deduplicates = true;  ///< a storage that is saved twice is stored once
  bool prefetches = true;
  std::int64_t chunk = 2;         ///< operators of a prefetch chunk
  bool prefetches_across = true;  ///< micro-batches whose backwards follow each other
  bool forwards = true;
  bool cancels = false;  ///< the queued store of a forwarded tensor is dropped
  bool is_adaptive = true;
  KeepSwitch flips = KeepSwitch::after_node;
  std::optional<BytesPerSecond> bandwidth;  ///< instead of the measured one
  std::int32_t profile_iteration = 2;
  bool records_first = true;       ///< the first iteration moves nothing, it records sizes
  bool keeps_last_module = false;  ///< of a micro-batch whose backward follows at once
  /// Kernels that the launch thread is ahead of the GPU at most. assumed: CUDA's queue of launches.
  std::int32_t launch_queue = 1024;
};

/// The keys of `activations: {name: ssdtrain, …}` (docs/scenario.md), with located errors.
SsdTrainOptions read_ssdtrain(yaml::Map& options, const Machine& machine);

}  // namespace tidegate
