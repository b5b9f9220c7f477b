#include <string>

#include "tests/catch.hpp"
#include "tests/sim/graph/networks.hpp"

using namespace tidegate;

namespace {

std::string order_of(const std::string& text) {
  std::string names;
  for (const Layer& layer : build_graph(workload_from(text)).layers) names += layer.name;
  return names;
}

const std::string kernel = "forward: [{elementwise: {bytes: 1 MB}}]";

}  // namespace

TEST_CASE("an explicit layer carries its kernels, tensors and sizes", "[explicit]") {
  const Workload w = workload_from(
      "layers:\n"
      "- name: conv\n"
      "  forward: [{gemm: {m: 2, n: 3, k: 5, batch: 7}}, {elementwise: {bytes: 1 MB, launches: "
      "2}}]\n"
      "  parameters: [{name: weight, elements: 15}, {name: bias, elements: 3, small: true}]\n"
      "  saved: [{name: x, bytes: 10 B}, {name: y, bytes: 5 B}]\n"
      "  input: 10 B\n"
      "  workspace: 1 KiB\n"
      "- name: attend\n"
      "  kind: other\n"
      "  operators:\n"
      "  - {name: core, attention_core: true, saved: [{name: lse, bytes: 4 B}],\n"
      "     forward: [{attention: {heads: 2, queries: 8, head_dim: 4}}]}\n"
      "  - {name: out, forward: [{gemm: {m: 8, n: 8, k: 8}}], backward: [], parameters: 64}\n");
  const LayerGraph graph = build_graph(w);
  REQUIRE(graph.layers.size() == 2);
  const Layer& conv = graph.layers[0];
  CHECK(graph.parameters == 15 + 3 + 64);
  CHECK(conv.saved().value() == 15);
  CHECK(conv.input.value() == 10);
  CHECK(conv.workspace.value() == 1024);
  CHECK(conv.forward_flops().value() == 2 * 2 * 3 * 5 * 7);
  const std::vector<Kernel> backward = {Elementwise{Bytes(2e6), 2}, Gemm{2, 5, 3, 7},
                                        Gemm{5, 3, 2, 7}};
  CHECK(conv.backward_kernels() == backward);
  const Layer& attend = graph.layers[1];
  CHECK(attend.core_saved().value() == 4);
  CHECK(attend.backward_flops().value() == 2.5 * 4 * 2 * 8 * 8 * 4 / 2);
}

TEST_CASE("layers run in file order unless one waits for another", "[explicit]") {
  CHECK(order_of("layers: [{name: a, " + kernel + "}, {name: b, " + kernel + "}]\n") == "ab");
  CHECK(order_of("layers: [{name: a, after: [c], " + kernel + "}, {name: b, " + kernel +
                 "}, {name: c, " + kernel + "}]\n") == "bca");
}

TEST_CASE("a cycle of layers is located and named", "[explicit]") {
  const std::string said =
      fault_of("layers:\n- {name: in, " + kernel + "}\n- {name: a, after: [in, c], " + kernel +
               "}\n- {name: b, after: [a], " + kernel + "}\n- {name: c, after: [b], " + kernel +
               "}\n- {name: out, after: [c], " + kernel + "}\n");
  CHECK_THAT(said,
             Containing("in.yaml:3:3: layers[1]: waits for itself: a -> b -> c -> a; remove one"));
  CHECK_THAT(fault_of("layers: [{name: a, after: [a], " + kernel + "}]\n"),
             Containing("itself: a -> a"));
}

TEST_CASE("faults of an explicit list are located", "[explicit]") {
  CHECK_THAT(
      fault_of("layers: [{name: one, " + kernel + "}, {name: two, after: [ome], " + kernel + "}]"),
      Containing("layers[1].after[0]: no layer is named 'ome'; did you mean 'one'?"));
  CHECK_THAT(fault_of("layers: [{name: a, " + kernel + "}, {name: a, " + kernel + "}]"),
             Containing("layers[1]: is a second layer named 'a'"));
  CHECK_THAT(fault_of("layers: []"), Containing("layers: is empty"));
  CHECK_THAT(fault_of("layers: [{name: a, operators: []}]"), Containing("operators: is empty"));
  CHECK_THAT(fault_of("layers: [{name: a}]"), Containing("forward: is missing"));
  CHECK_THAT(fault_of("layers: [{name: a, forward: [{gemm: {m: 0, n: 1, k: 1}}]}]"),
             Containing("layers[0].forward[0].gemm.m: is 0; it must be at least 1"));
  CHECK_THAT(fault_of("layers: [{name: a, forward: [{gem: {m: 1}}]}]"), Containing("unknown key"));
  CHECK_THAT(fault_of("layers: [{name: a, forward: [{elementwise: {bytes: -1 MB}}]}]"),
             Containing("must be greater than zero"));
  CHECK_THAT(fault_of("layers: [{name: a, " + kernel + ", input: 5}]"), Containing("has no unit"));
}
