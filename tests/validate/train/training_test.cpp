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

TEST_CASE("what a workload lacks an arithmetic for is said", "[train]") {
  Workload w = tiny::llama();
  CHECK(unsupported(w).empty());
  w.kernels.hidden_dropout = 0.1;
  CHECK_THAT(unsupported(w), Containing("dropout"));
  w = tiny::llama();
  w.network.experts = 4;
  CHECK_THAT(unsupported(w), Containing("experts"));
}
