#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/validate/train/workloads.hpp"
#include "validate/train/training.hpp"

using namespace tidegate;
using namespace tidegate::train;

namespace {

nlohmann::json to_json(const Workload& w) {
  const Network& n = w.network;
  return {{"layers", n.layers},
          {"hidden", n.hidden},
          {"ffn", n.ffn},
          {"heads", n.heads},
          {"kv_heads", n.kv_heads},
          {"head_dim", n.head_dim},
          {"sequence", w.sequence},
          {"sliding_window", n.sliding_window},
          {"rotary_fraction", n.positions == Positions::rotary ? n.rotary_fraction : 0},
          {"activation", n.activation == Activation::gelu   ? "gelu"
                         : n.activation == Activation::silu ? "silu"
                                                            : "relu"},
          {"is_gated", n.has_gated_ffn},
          {"is_layer_norm", n.norm == NormKind::layer_norm}};
}

// Parameters by name, "layer.tensor".
nlohmann::json to_json(const LayerGraph& graph, const NetworkTensors& parameters) {
  nlohmann::json all = nlohmann::json::object();
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    for (std::size_t op = 0; op < graph.layers[l].operators.size(); ++op) {
      const auto& tensors = graph.layers[l].operators[op].parameters;
      for (std::size_t i = 0; i < tensors.size(); ++i)
        all[graph.layers[l].name + "." + tensors[i].name] = parameters[l][op][i];
    }
  }
  return all;
}

}  // namespace

// Not a test of its own: writes what validate/train/against_torch.py compares.
TEST_CASE("losses of twenty steps for PyTorch to repeat", "[.export]") {
  const char* path = std::getenv("TIDEGATE_TRAINING_EXPORT");
  REQUIRE(path != nullptr);
  nlohmann::json cases = nlohmann::json::array();
  for (const tiny::Case& c : tiny::all()) {
    const TrainingOptions options{.seed = 11, .steps = 20, .adam = {.rate = 1e-2F}};
    const LayerGraph graph = build_graph(c.workload);
    nlohmann::json batches = nlohmann::json::array();
    for (std::int64_t step = 0; step < options.steps; ++step) {
      const Batch b = batch_of(c.workload, options.seed, step, 0, 0);
      batches.push_back({{"tokens", b.tokens}, {"labels", b.labels}});
    }
    cases.push_back({{"name", c.name},
                     {"network", to_json(c.workload)},
                     {"rate", options.adam.rate},
                     {"decay", options.adam.decay},
                     {"parameters", to_json(graph, initial_parameters(graph, options.seed))},
                     {"batches", batches},
                     {"losses", train::train(c.workload, options).losses}});
  }
  std::ofstream(path) << cases;
}
