#include "validate/ssdtrain_cost.hpp"

#include <algorithm>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr double element = 2;  // bytes, 16 bits
constexpr double days_per_year = 365;
constexpr Seconds seconds_per_day(86400);
// NVLink's smallest message, of the model's GPU files.
constexpr Seconds least_reduction(8e-6);
constexpr std::int64_t gpus_of_node = 8;

double real(std::int64_t count) { return static_cast<double>(count); }

// Sizes as one tensor-parallel rank has them.
struct Sizes {
  explicit Sizes(const SsdTrainRun& run)
      : ranks(real(run.tensor_parallel)),
        hidden(real(run.hidden)),
        tokens(real(run.sequence) * real(run.micro_batch)),
        stream(tokens * hidden / ranks) {}

  double ranks, hidden;
  double tokens;  // s·b
  double stream;  // s·b·h/t
};

Bytes attention_activations(const SsdTrainRun& run) {
  const Sizes n(run);
  const double projections = 5 * element, core = 2 * element, mask = 1;
  const double statistics = 4 * element * real(run.heads) * n.tokens / n.ranks;
  return Bytes((projections + core + mask) * n.stream + statistics);
}

Bytes feed_forward_activations(const SsdTrainRun& run) {
  return Bytes((element + 2 * 4 * element) * Sizes(run).stream);
}

Bytes norm_activations(const SsdTrainRun& run) { return Bytes(4 * Sizes(run).stream); }

// Of one product: the longer of computing and moving its weights and activations.
Seconds product(const SsdTrainRun& run, Flops flops, double weights, Bytes activations) {
  const double ranks = real(run.tensor_parallel);
  const Bytes moved = Bytes(element * weights / ranks) + activations;
  return std::max(flops / ranks / run.rate, moved / run.memory_bandwidth);
}

Seconds reduction(const SsdTrainRun& run) {
  if (run.tensor_parallel == 1) return Seconds(0);
  const Sizes n(run);
  const Bytes moved(2 * element * n.tokens * n.hidden * (n.ranks - 1) / n.ranks);
  return std::max(moved / run.links, least_reduction);
}

double layer_parameters(const SsdTrainRun& run) {
  const double h = real(run.hidden);
  return 12 * h * h + 2 * h;
}

Seconds gather(const SsdTrainRun& run) {
  if (!run.is_zero3) return Seconds(0);
  const double ranks = real(run.data_parallel);
  const BytesPerSecond bandwidth = run.data_parallel <= gpus_of_node ? run.links : run.network;
  return Bytes(element * layer_parameters(run) * (ranks - 1) / ranks) / bandwidth;
}

std::int64_t layers_of_stage(const SsdTrainRun& run) { return run.layers / run.stages; }

}  // namespace

Bytes layer_activations(const SsdTrainRun& run) {
  return attention_activations(run) + feed_forward_activations(run) + 2 * norm_activations(run);
}

Bytes micro_batch_activations(const SsdTrainRun& run) {
  const Sizes n(run);
  const Bytes embedding(element * n.stream);
  const Bytes logits(element * n.tokens * real(run.vocabulary) / n.ranks);
  return real(run.layers) * layer_activations(run) + embedding + logits + norm_activations(run);
}

Bytes step_activations(const SsdTrainRun& run) {
  return micro_batch_activations(run) * (real(run.accumulation) / real(run.stages));
}

Seconds SsdTrainForward::layer() const {
  return std::max(attention + feed_forward + norms + reductions, gather);
}

SsdTrainForward forward_parts(const SsdTrainRun& run) {
  const Sizes n(run);
  const double h = n.hidden, s = real(run.sequence), v = real(run.vocabulary);
  const Flops projections(8 * n.tokens * h * h), scores(4 * n.tokens * s * h);
  return {.attention = product(run, projections + scores, 4 * h * h, attention_activations(run)),
          .feed_forward =
              product(run, Flops(16 * n.tokens * h * h), 8 * h * h, feed_forward_activations(run)),
          .norms = 2 * norm_activations(run) / run.memory_bandwidth,
          .reductions = 2 * reduction(run),
          .gather = gather(run),
          .embedding = Bytes(element * v * h) / run.memory_bandwidth + reduction(run),
          .head = Flops(2 * n.tokens * h * v) / (n.ranks * real(run.stages)) / run.rate};
}

Seconds forward_time(const SsdTrainRun& run) {
  const SsdTrainForward parts = forward_parts(run);
  return real(layers_of_stage(run)) * parts.layer() + parts.embedding + parts.head;
}

Bytes model_states(const SsdTrainRun& run) {
  constexpr double bytes_of_parameter = 2 + 4 + 12;
  const double h = real(run.hidden);
  const double parameters =
      real(layers_of_stage(run)) * layer_parameters(run) + real(run.vocabulary) * h + h;
  const double owners = real(run.tensor_parallel) * (run.is_zero3 ? real(run.data_parallel) : 1);
  return Bytes(bytes_of_parameter * parameters / owners);
}

Seconds step_time(const SsdTrainRun& run) {
  return 3 * real(run.accumulation) * forward_time(run) + model_states(run) / run.memory_bandwidth;
}

BytesPerSecond write_bandwidth(const SsdTrainRun& run) {
  return micro_batch_activations(run) / real(run.stages) / (1.5 * forward_time(run));
}

std::int64_t largest_micro_batch(const SsdTrainRun& run, std::int64_t batch_of_rank) {
  ensure(batch_of_rank >= 1, "a rank has a sequence or more");
  SsdTrainRun one = run;
  one.micro_batch = 1;
  const double fits = (run.memory - model_states(run)) / (2 * layer_activations(one));
  for (std::int64_t b = batch_of_rank; b > 1; --b) {
    if (batch_of_rank % b == 0 && real(b) <= fits) return b;
  }
  return 1;
}

Bytes endurance(const SsdTrainDrives& d) {
  return d.capacity * (d.count * d.writes_per_day * days_per_year * d.warranty_years *
                       d.rated_write_amplification / d.write_amplification);
}

double lifetime_years(const SsdTrainRun& run, const SsdTrainDrives& drives) {
  const double steps = endurance(drives) / step_activations(run);
  return steps * step_time(run) / (days_per_year * seconds_per_day);
}

}  // namespace tidegate
