#pragma once

#include <cstdint>

#include "models/base/units.hpp"

/// The cost model that SSDTrain (arXiv 2408.10013) was projected with, as equations: how many bytes
/// of activations a GPU writes, how fast it must, and how long drives live. Source: the authors'
/// published model, github.com/K-Wu/llm-analysis at 44495f6. It is theirs and coarse; our own
/// predictions come from simulate(). It stands here so that theirs can be held against it.
///
/// Letters: s tokens of a sequence, b sequences of a micro-batch, h hidden, a heads, L layers,
/// V vocabulary, t tensor-parallel, p pipeline stages, d data-parallel ranks, F achieved FLOP/s of
/// a GPU, M bandwidth of GPU memory. 16-bit weights and activations, feed-forward 4h, flash
/// attention, sequence parallelism wherever t > 1, embedding shared with the head, Adam.
///
/// Not in the model: pipeline bubbles and stage transfers, reductions of gradients, reading
/// activations back, biases, GEMMs that differ in efficiency.
namespace tidegate {

struct SsdTrainRun {
  std::int64_t layers = 0, hidden = 0, heads = 0, vocabulary = 0, sequence = 0;
  std::int64_t tensor_parallel = 1, stages = 1, data_parallel = 1;
  bool is_zero3 = false;  ///< weights, gradients and optimizer states shared among the d ranks
  std::int64_t micro_batch = 1, accumulation = 1;
  FlopsPerSecond rate = {};              ///< F
  Bytes memory = {};                     ///< of a GPU; the model counts 80 GB parts as 80 GiB
  BytesPerSecond memory_bandwidth = {};  ///< M
  BytesPerSecond links = {};             ///< of a GPU within a node
  BytesPerSecond network = {};           ///< of a GPU among nodes
};

/// Activations of one layer and micro-batch on one rank:
///
///   attention      (10 + 4 + 1) s·b·h/t + 8 a·s·b/t    inputs of qkv, core and projection 10;
///   flash
///                                                      attention's workings 4 and 8 a·s·b; mask 1
///   feed-forward   (2 + 8 + 8) s·b·h/t                 inputs of both products and of GELU; no
///   mask two norms      2 · 4 s·b·h/t                       fp32 inputs
///
/// which is (41 s·b·h + 8 a·s·b)/t.
Bytes layer_activations(const SsdTrainRun& run);

/// Activations of one micro-batch, all L layers:
///
///   A = L · layer + 2 s·b·h/t (embedding) + 2 s·b·V/t (logits) + 4 s·b·h/t (last norm)
Bytes micro_batch_activations(const SsdTrainRun& run);

/// Written by one GPU in a step: A · accumulation / p. All L layers are counted and divided among
/// the stages, embedding and logits included.
Bytes step_activations(const SsdTrainRun& run);

/// Parts of the forward time of one micro-batch on one stage. Layer parts are of one layer.
struct SsdTrainForward {
  /// max((8 s·b·h² + 4 b·s²·h)/(t·F), (8 h²/t + its activations)/M): weights are 2 · 4 h² bytes
  Seconds attention;
  /// max(16 s·b·h²/(t·F), (16 h²/t + its activations)/M)
  Seconds feed_forward;
  Seconds norms;  ///< 8 s·b·h/(t·M)
  /// Two ring all-reduces of the stream, 2 · 2 s·b·h · (t-1)/t / links each, at least 8 us.
  Seconds reductions;
  /// ZeRO-3 alone: gather of the layer's weights, 2 (12 h² + 2 h) (d-1)/d over links up to d = 8
  /// and over the network beyond. Overlapped: a layer takes the longer of this and the rest.
  Seconds gather;
  Seconds embedding;  ///< the whole table once, 2 V·h/M, and one reduction
  Seconds head;       ///< 2 s·b·h·V/(t·p·F)

  Seconds layer() const;
};
SsdTrainForward forward_parts(const SsdTrainRun& run);

/// Forward of a micro-batch: ⌊L/p⌋ layers, embedding and head.
Seconds forward_time(const SsdTrainRun& run);

/// Weights 2, fp32 gradients 4, fp32 master weights and moments 12 bytes for each of the
/// ⌊L/p⌋ (12 h² + 2 h)/t + (V·h + h)/t parameters of a GPU; ZeRO-3 divides by d.
Bytes model_states(const SsdTrainRun& run);

/// 3 · forward · accumulation + model states / M: backward takes two forwards, and the update
/// passes over the states once.
Seconds step_time(const SsdTrainRun& run);

/// Bandwidth with which writes end in time, A / p / (1.5 forward): they may last half of forward
/// and backward.
BytesPerSecond write_bandwidth(const SsdTrainRun& run);

/// The largest divisor of a rank's batch that fits beside the model states, when two layers'
/// activations are on the GPU at a time: b <= (memory - states)/(2 · layer at b = 1). At least 1.
std::int64_t largest_micro_batch(const SsdTrainRun& run, std::int64_t batch_of_rank);

/// Drives that one GPU writes to. The defaults are those of the model.
struct SsdTrainDrives {
  double count = 4;
  Bytes capacity{12.8e12};  ///< Solidigm D7-P5620, 12.8 TB
  double writes_per_day = 3;
  double warranty_years = 5;               ///< of 365 days
  double rated_write_amplification = 2.5;  ///< of the JEDEC workload that drives are rated with
  double write_amplification = 1;          ///< of activations: large sequential files
};

/// Bytes that may be written: count · capacity · writes_per_day · 365 · years · rated / real
/// amplification.
Bytes endurance(const SsdTrainDrives& drives);

/// Years of 365 days until a GPU's drives are worn: endurance · step time / bytes of a step.
double lifetime_years(const SsdTrainRun& run, const SsdTrainDrives& drives);

}  // namespace tidegate
