#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "calib/kernels/kernels.hpp"
#include "sim/plan/meaning.hpp"
#include "validate/train/network.hpp"

/// Training of several data-parallel ranks without any plan: what training under a plan has to give
/// bit for bit.
namespace tidegate::train {

/// Mean over ranks, summed in fp32 in the order of the ranks and rounded to `type`.
Values mean_of(std::span<const Values* const> ranks, DType type);

/// What Adam keeps of a tensor, or of a slice of one: fp32.
struct States {
  Values master, first, second;
};
/// Of a network between two steps: all that training goes on from.
struct State {
  std::int64_t step = 0;                 ///< steps done
  NetworkTensors master, first, second;  ///< fp32
  bool operator==(const State&) const = default;
};
/// Before the first step.
State initial_state(const LayerGraph& graph, std::uint64_t seed);

struct TrainingOptions {
  std::uint64_t seed = 1;
  std::int64_t steps = 1;        ///< to do
  const State* start = nullptr;  ///< null: from the beginning; else outlives the training
  std::int64_t ranks = 1;
  cpu::AdamOptions adam;  ///< its step and scale are set by the training; SGD has its rate
  Update update;          ///< of a delayed one the first step of the training is the first of all
  bool recomputes = false;
  /// ZeRO 2 and 3 reduce the gradients of every micro-step and add up what they own; below, ranks
  /// add up by themselves and reduce once. In 16 bits the sums round differently.
  bool reduces_every_micro_step = false;
  std::function<void()> between;  ///< called before every micro-batch; what it throws ends training
  const Backend* backend = nullptr;  ///< null: the CPU's; else outlives the training
  const Backend& computes() const { return backend != nullptr ? *backend : cpu_backend(); }
};
struct Training {
  std::vector<double> losses;  ///< of every micro-step and rank, in this order
  State state;                 ///< after the last step
};
Training train(const Workload& workload, const TrainingOptions& options);

/// One step of AdamW, or of SGD (p -= rate · gradient), on the sum of a step's micro-batch
/// gradients, which is multiplied by 1 / accumulation; the step counts from 1. Without masters
/// everything is rounded to the network's type.
void update(States& states, std::span<const float> gradient, const TrainingOptions& options,
            std::int64_t step, const Workload& workload);

}  // namespace tidegate::train
