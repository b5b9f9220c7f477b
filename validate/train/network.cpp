#include "validate/train/network.hpp"

#include <utility>

#include "models/base/error.hpp"

namespace tidegate::train {
namespace {

constexpr double deviation = 0.02;

Values initial(const Parameter& p, std::uint64_t seed, std::uint64_t stream, DType type) {
  Values values(static_cast<std::size_t>(p.elements));
  const bool is_bias = p.name.ends_with(".bias");
  if (p.is_small) {  // norms and biases
    values.assign(values.size(), is_bias ? 0.0F : 1.0F);
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(deviation * normal(seed, stream, i));
  round_all(values, type);
  return values;
}

// Streams of random numbers beyond those of parameters.
constexpr std::uint64_t starts = 1ULL << 40, noise = 1ULL << 41;

class Run {
 public:
  Run(const Workload& workload, const LayerGraph& graph, const NetworkTensors& parameters,
      const Batch& batch, const Backend& backend)
      : workload_(workload),
        graph_(graph),
        parameters_(parameters),
        batch_(batch),
        backend_(backend) {}

  void forward(std::size_t layer, Flow& flow, Storages& storages) const {
    for (std::size_t op = 0; op < operators(layer).size(); ++op)
      train::forward(site(layer, op), parameters_of(graph_, parameters_, layer, op), flow,
                     storages);
  }
  void backward(std::size_t layer, Flow& flow, const Storages& storages,
                NetworkTensors& gradients) const {
    for (std::size_t op = operators(layer).size(); op-- > 0;) {
      Tensors mine = train::backward(site(layer, op), parameters_of(graph_, parameters_, layer, op),
                                     flow, storages);
      const bool is_tied = is_tied_projection(operators(layer)[op]);
      Tensors& to = is_tied ? gradients[0][0] : gradients[layer][op];
      to.resize(std::max(to.size(), mine.size()));
      for (std::size_t i = 0; i < mine.size(); ++i) {
        round_all(mine[i], workload_.dtype);
        add_to(to[i], mine[i], workload_.dtype, backend_);
      }
    }
  }

 private:
  const Workload& workload_;
  const LayerGraph& graph_;
  const NetworkTensors& parameters_;
  const Batch& batch_;
  const Backend& backend_;

  const std::vector<Operator>& operators(std::size_t layer) const {
    return graph_.layers[layer].operators;
  }
  Site site(std::size_t layer, std::size_t op) const {
    return {workload_,     graph_.layers[layer], operators(layer)[op],
            batch_.tokens, batch_.labels,        backend_};
  }
};

}  // namespace

NetworkTensors initial_parameters(const LayerGraph& graph, std::uint64_t seed) {
  NetworkTensors all;
  std::uint64_t stream = 0;
  for (const Layer& layer : graph.layers) {
    LayerTensors& tensors = all.emplace_back();
    for (const Operator& op : layer.operators) {
      Tensors& mine = tensors.emplace_back();
      for (const Parameter& p : op.parameters)
        mine.push_back(initial(p, seed, stream++, graph.dtype));
    }
  }
  return all;
}

Batch batch_of(const Workload& workload, std::uint64_t seed, std::int64_t iteration,
               std::int64_t micro_step, std::int64_t rank) {
  const std::int64_t vocabulary = workload.network.vocabulary;
  const auto which =
      static_cast<std::uint64_t>((iteration * workload.accumulation + micro_step) * 4096 + rank);
  Batch batch;
  for (std::int64_t s = 0; s < workload.micro_batch; ++s) {
    const auto sequence = which * 4096 + static_cast<std::uint64_t>(s);
    auto token = static_cast<std::int64_t>(uniform(seed, starts, sequence) *
                                           static_cast<double>(vocabulary));
    for (std::int64_t t = 0; t < workload.sequence; ++t) {
      batch.tokens.push_back(static_cast<std::int32_t>(token));
      const auto position =
          sequence * static_cast<std::uint64_t>(workload.sequence) + static_cast<std::uint64_t>(t);
      const std::int64_t extra = uniform(seed, noise, position) < 0.5 ? 0 : 1;
      token = (3 * token + 1 + extra) % vocabulary;
      batch.labels.push_back(static_cast<std::int32_t>(token));
    }
  }
  return batch;
}

bool is_tied_projection(const Operator& op) {
  return op.name == "projection" && op.parameters.empty();
}

Tensors parameters_of(const LayerGraph& graph, const NetworkTensors& all, std::size_t layer,
                      std::size_t op) {
  if (is_tied_projection(graph.layers[layer].operators[op])) return {all[0][0][0]};
  return all[layer][op];
}

MicroStep run(const Workload& workload, const LayerGraph& graph, const NetworkTensors& parameters,
              const Batch& batch, bool recomputes, const Backend& backend) {
  ensure(unsupported(workload).empty(), "the workload has an arithmetic");
  const Run run(workload, graph, parameters, batch, backend);
  const std::size_t layers = graph.layers.size();
  std::vector<Storages> saved(layers);
  std::vector<Values> inputs(layers);
  const auto is_run_again = [&](std::size_t l) {
    return recomputes && graph.layers[l].kind == LayerKind::block;
  };
  MicroStep result;
  Flow flow;
  for (std::size_t l = 0; l < layers; ++l) {
    if (is_run_again(l)) inputs[l] = flow.stream;
    run.forward(l, flow, saved[l]);
    if (is_run_again(l)) saved[l].clear();
  }
  result.loss = flow.loss;
  for (const Layer& layer : graph.layers) result.gradients.emplace_back(layer.operators.size());
  flow = {};
  for (std::size_t l = layers; l-- > 0;) {
    if (is_run_again(l)) {
      Flow again;
      again.stream = inputs[l];
      run.forward(l, again, saved[l]);
    }
    run.backward(l, flow, saved[l], result.gradients);
    saved[l].clear();
  }
  return result;
}

}  // namespace tidegate::train
