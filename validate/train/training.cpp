#include "validate/train/training.hpp"

#include <algorithm>
#include <utility>

namespace tidegate::train {
namespace {

template <class Visit>
void each_tensor(const NetworkTensors& shape, Visit visit) {
  for (std::size_t l = 0; l < shape.size(); ++l) {
    for (std::size_t op = 0; op < shape[l].size(); ++op) {
      for (std::size_t i = 0; i < shape[l][op].size(); ++i) visit(l, op, i);
    }
  }
}

NetworkTensors averaged(std::span<const NetworkTensors> ranks, DType type) {
  NetworkTensors mean = ranks[0];
  each_tensor(mean, [&](std::size_t l, std::size_t op, std::size_t i) {
    std::vector<const Values*> all;
    for (const NetworkTensors& rank : ranks) all.push_back(&rank[l][op][i]);
    mean[l][op][i] = mean_of(all, type);
  });
  return mean;
}

void add(NetworkTensors& to, const NetworkTensors& from, DType type) {
  if (to.empty()) {
    to = from;
    return;
  }
  each_tensor(to, [&](std::size_t l, std::size_t op, std::size_t i) {
    add_to(to[l][op][i], from[l][op][i], type);
  });
}

class Trainer {
 public:
  Trainer(const Workload& workload, const TrainingOptions& options)
      : workload_(workload),
        options_(options),
        graph_(build_graph(workload)),
        state_(options.start != nullptr ? *options.start : initial_state(graph_, options.seed)) {
    take_parameters();
  }

  Training run() {
    for (std::int64_t s = 0; s < options_.steps; ++s) apply(gradients(state_.step));
    return {std::move(losses_), std::move(state_)};
  }

 private:
  NetworkTensors gradients(std::int64_t step) {
    const auto ranks = static_cast<std::size_t>(options_.ranks);
    std::vector<NetworkTensors> local(ranks);
    NetworkTensors owned;
    for (std::int64_t m = 0; m < workload_.accumulation; ++m) {
      for (std::size_t r = 0; r < ranks; ++r) {
        if (options_.between) options_.between();
        const Batch batch =
            batch_of(workload_, options_.seed, step, m, static_cast<std::int64_t>(r));
        MicroStep one = train::run(workload_, graph_, parameters_, batch, options_.recomputes,
                                   options_.computes());
        losses_.push_back(one.loss);
        if (options_.reduces_every_micro_step) local[r].clear();
        add(local[r], one.gradients, workload_.dtype);
      }
      if (options_.reduces_every_micro_step)
        add(owned, averaged(local, workload_.dtype), workload_.dtype);
    }
    return options_.reduces_every_micro_step ? owned : averaged(local, workload_.dtype);
  }

  void apply(const NetworkTensors& gradients) {
    ++state_.step;
    const bool is_delayed = options_.update.is_delayed;
    if (is_delayed) take_parameters();
    each_tensor(parameters_, [&](std::size_t l, std::size_t op, std::size_t i) {
      States states{std::move(state_.master[l][op][i]), std::move(state_.first[l][op][i]),
                    std::move(state_.second[l][op][i])};
      update(states, gradients[l][op][i], options_, state_.step, workload_);
      state_.master[l][op][i] = std::move(states.master);
      state_.first[l][op][i] = std::move(states.first);
      state_.second[l][op][i] = std::move(states.second);
    });
    if (!is_delayed) take_parameters();
  }

  // What the next step computes with.
  void take_parameters() {
    parameters_ = state_.master;
    each_tensor(parameters_, [&](std::size_t l, std::size_t op, std::size_t i) {
      round_all(parameters_[l][op][i], workload_.dtype);
    });
  }

  const Workload& workload_;
  const TrainingOptions& options_;
  LayerGraph graph_;
  State state_;
  NetworkTensors parameters_;  // rounded
  std::vector<double> losses_;
};

}  // namespace

State initial_state(const LayerGraph& graph, std::uint64_t seed) {
  State state{.master = initial_parameters(graph, seed)};
  state.first = state.master;
  each_tensor(state.first, [&](std::size_t l, std::size_t op, std::size_t i) {
    std::ranges::fill(state.first[l][op][i], 0.0F);
  });
  state.second = state.first;
  return state;
}

Values mean_of(std::span<const Values* const> ranks, DType type) {
  Values mean = *ranks[0];
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += (*ranks[r])[i];
  }
  for (float& v : mean) v /= static_cast<float>(ranks.size());
  round_all(mean, type);
  return mean;
}

void update(States& states, std::span<const float> gradient, const TrainingOptions& options,
            std::int64_t step, const Workload& workload) {
  cpu::AdamOptions adam = options.adam;
  adam.step = step;
  adam.scale = 1.0F / static_cast<float>(workload.accumulation);
  if (options.update.rule == Update::Rule::adam) {
    options.computes().adam(states.master, states.first, states.second, gradient, adam);
  } else {
    options.computes().sgd(states.master, gradient, adam.rate, adam.scale);
  }
  if (options.update.keeps_master) return;
  for (Values* values : {&states.master, &states.first, &states.second})
    round_all(*values, workload.dtype);
}

Training train(const Workload& workload, const TrainingOptions& options) {
  return Trainer(workload, options).run();
}

}  // namespace tidegate::train
