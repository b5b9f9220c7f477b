#include <cmath>

#include "tests/catch.hpp"
#include "tests/validate/train/workloads.hpp"
#include "validate/train/training.hpp"

using namespace tidegate;
using namespace tidegate::train;

namespace {

Training trained(const Workload& workload, TrainingOptions options) {
  options.steps = 5;
  return train::train(workload, options);
}

bool is_same(const Training& a, const Training& b) {
  return a.losses == b.losses && a.state == b.state;
}

}  // namespace

TEST_CASE("recomputation gives the same losses and parameters bit for bit", "[train]") {
  for (const DType type : {DType::fp32, DType::bf16, DType::fp16}) {
    for (tiny::Case& c : tiny::all()) {
      INFO(c.name << " in " << name_of(type));
      c.workload.dtype = type;
      CHECK(is_same(trained(c.workload, {}), trained(c.workload, {.recomputes = true})));
    }
  }
}

TEST_CASE("equal seeds train equally, others do not", "[train]") {
  const Workload w = tiny::llama();
  CHECK(is_same(trained(w, {.seed = 4}), trained(w, {.seed = 4})));
  CHECK_FALSE(is_same(trained(w, {.seed = 4}), trained(w, {.seed = 5})));
}

TEST_CASE("an untrained network guesses evenly and learns", "[train]") {
  Workload w = tiny::llama();
  w.dtype = DType::bf16;
  const Training t = train::train(w, {.steps = 60, .adam = {.rate = 1e-2F, .decay = 0.0F}});
  // Even guesses over 32 tokens: ln 32 = 3.466. The successor is one of two tokens, so that
  // ln 2 = 0.69 is the least; half the way shows that it learns.
  CHECK(t.losses.front() == Approx(std::log(32.0)).margin(0.05));
  CHECK(t.losses.back() < 0.5 * (std::log(32.0) + std::log(2.0)));
}

TEST_CASE("two micro-steps and two ranks see the same mean gradient as one batch of both",
          "[train]") {
  // One step of plain descent would be equal up to rounding; Adam's first step is the sign of the
  // gradient almost everywhere, so compare the gradients themselves.
  Workload w = tiny::llama();
  const LayerGraph graph = build_graph(w);
  const NetworkTensors parameters = initial_parameters(graph, 1);
  const Batch a = batch_of(w, 1, 0, 0, 0), b = batch_of(w, 1, 0, 0, 1);
  Batch both = a;
  both.tokens.insert(both.tokens.end(), b.tokens.begin(), b.tokens.end());
  both.labels.insert(both.labels.end(), b.labels.begin(), b.labels.end());
  const MicroStep one = run(w, graph, parameters, a), two = run(w, graph, parameters, b);
  w.micro_batch *= 2;
  const MicroStep joint = run(w, build_graph(w), parameters, both);
  CHECK(joint.loss == Approx((one.loss + two.loss) / 2).epsilon(1e-6));
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    for (std::size_t op = 0; op < graph.layers[l].operators.size(); ++op) {
      for (std::size_t i = 0; i < one.gradients[l][op].size(); ++i) {
        const Values* ranks[] = {&one.gradients[l][op][i], &two.gradients[l][op][i]};
        const Values mean = mean_of(ranks, DType::fp32);
        for (std::size_t e = 0; e < mean.size(); ++e)
          CHECK(joint.gradients[l][op][i][e] == Approx(mean[e]).margin(1e-6));
      }
    }
  }
}

TEST_CASE("SGD steps by the rate times the mean gradient of the micro-steps", "[train]") {
  Workload w = tiny::llama();
  w.accumulation = 2;
  const LayerGraph graph = build_graph(w);
  const NetworkTensors before = initial_parameters(graph, 1);
  const MicroStep one = run(w, graph, before, batch_of(w, 1, 0, 0, 0));
  const MicroStep two = run(w, graph, before, batch_of(w, 1, 0, 1, 0));
  const Training t =
      train::train(w, {.adam = {.rate = 0.5F}, .update = {.rule = Update::Rule::sgd}});
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    for (std::size_t op = 0; op < graph.layers[l].operators.size(); ++op) {
      for (std::size_t i = 0; i < before[l][op].size(); ++i) {
        for (std::size_t e = 0; e < before[l][op][i].size(); ++e) {
          const float sum = one.gradients[l][op][i][e] + two.gradients[l][op][i][e];
          CHECK(t.state.master[l][op][i][e] == Approx(before[l][op][i][e] - sum / 4).margin(1e-7));
        }
      }
    }
  }
}

TEST_CASE("a delayed update computes each step with the parameters of the step before last",
          "[train]") {
  const Workload w = tiny::llama();  // fp32: the masters are the parameters
  const LayerGraph graph = build_graph(w);
  const Update delayed{.is_delayed = true};
  const Training three = train::train(w, {.steps = 3, .update = delayed});
  const NetworkTensors first = initial_parameters(graph, 1);
  CHECK(three.losses[0] == run(w, graph, first, batch_of(w, 1, 0, 0, 0)).loss);
  CHECK(three.losses[1] == run(w, graph, first, batch_of(w, 1, 1, 0, 0)).loss);
  // The first update is that of a step at once: it saw the first parameters.
  const NetworkTensors second = train::train(w, {.steps = 1}).state.master;
  CHECK(three.losses[2] == run(w, graph, second, batch_of(w, 1, 2, 0, 0)).loss);
  CHECK_FALSE(is_same(three, train::train(w, {.steps = 3})));
}

TEST_CASE("without masters parameters and moments have the network's type", "[train]") {
  Workload w = tiny::llama(1);
  w.dtype = DType::bf16;
  const Training t = trained(w, {.update = {.keeps_master = false}});
  for (const NetworkTensors* all : {&t.state.master, &t.state.first, &t.state.second}) {
    for (const LayerTensors& layer : *all) {
      for (const Tensors& tensors : layer) {
        for (const Values& values : tensors) {
          Values narrow = values;
          round_all(narrow, DType::bf16);
          CHECK(narrow == values);
        }
      }
    }
  }
  CHECK_FALSE(is_same(t, trained(w, {})));
}

TEST_CASE("what a workload lacks an arithmetic for is said", "[train]") {
  Workload w = tiny::llama();
  CHECK(unsupported(w).empty());
  w.kernels.hidden_dropout = 0.1;
  CHECK_THAT(unsupported(w), Containing("dropout"));
  w = tiny::llama();
  w.network.experts = 4;
  CHECK_THAT(unsupported(w), Containing("experts"));
}
