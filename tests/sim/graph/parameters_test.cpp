#include <string>

#include "sim/graph/workload.hpp"

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

std::string config(const std::string& name) {
  return std::string(TIDEGATE_SOURCE_DIR) + "/tests/data/hf_configs/" + name + ".json";
}

struct Shape {
  const char* name;
  std::int64_t layers, hidden, ffn, heads, total, tensors;
};
// Maurya et al. 2025 (MLP-Offload), training logs: exact parameters and number of tensors.
constexpr Shape megatron_shapes[] = {
    {"40B", 128, 5120, 20480, 40, 48163722240, 899},
    {"52B", 64, 8192, 21824, 64, 44278226944, 451},
    {"70B", 80, 8192, 28672, 64, 68605452288, 563},
    {"100B", 124, 8192, 28672, 64, 105885147136, 871},
    {"120B", 96, 10240, 28672, 80, 106728663040, 675},
};

Network megatron(const Shape& s) {
  return {.layers = s.layers,
          .hidden = s.hidden,
          .ffn = s.ffn,
          .heads = s.heads,
          .kv_heads = 4,
          .head_dim = 128,
          .vocabulary = 50304,
          .has_gated_ffn = true,
          .has_fused_projections = true,
          .activation = Activation::silu};
}

}  // namespace

// Totals as the published checkpoints print them.
TEST_CASE("parameter counts of published checkpoints are exact", "[parameters]") {
  const std::pair<const char*, std::int64_t> totals[] = {
      {"llama-2-7b", 6738415616},
      {"llama-2-70b", 68976648192},
      {"llama-3.1-8b", 8030261248},
      {"mistral-7b-v0.1", 7241732096},
      {"mixtral-8x7b-v0.1", 46702792704},
      {"qwen2.5-3b", 3085938688},
      {"qwen2.5-7b", 7615616512},
      {"qwen3-14b", 14768307200},
      {"opt-13b", 12853473280},
      {"gpt2-xl", 1557611200},
      {"bloomz-7b1", 7069016064},
      {"gpt-neox-20b", 20554567680},
      {"t5-3b", 2851598336},
  };
  for (const auto& [name, total] : totals) {
    INFO(name);
    CHECK(parameters_of(read_hugging_face(config(name))) == total);
  }
}

// 32 blocks of attention 41,943,040, router 32,768, norms 8,192 and 2 experts of 176,160,768; two
// tables of 131,072,000 and the last norm.
TEST_CASE("a mixture of experts uses two of eight experts per token", "[parameters]") {
  const LayerGraph graph = build_graph(workload_of(read_hugging_face(config("mixtral-8x7b-v0.1"))));
  CHECK(graph.parameters == 46702792704);
  CHECK(graph.active_parameters ==
        32LL * (41943040 + 32768 + 8192 + 2 * 176160768) + 2 * 131072000 + 4096);
  CHECK(static_cast<double>(graph.active_parameters) == Approx(12.88e9).epsilon(1e-3));
}

TEST_CASE("networks in Megatron's layout have the logged parameters and tensors", "[parameters]") {
  for (const Shape& shape : megatron_shapes) {
    INFO(shape.name);
    const LayerGraph graph = build_graph({.network = megatron(shape), .sequence = 2048});
    CHECK(graph.parameters == shape.total);
    CHECK(static_cast<std::int64_t>(parameters_in_order(graph).size()) == shape.tensors);
  }
}

TEST_CASE("parameters come in the order in which the framework registers them", "[parameters]") {
  const auto names = [](const Network& network) {
    std::string text;
    for (const Parameter& p :
         parameters_in_order(build_graph({.network = network, .sequence = 1}))) {
      if (p.name.starts_with("block.0.")) text += p.name.substr(8, p.name.rfind('.') - 8) + " ";
    }
    return text;
  };
  CHECK(names(megatron(megatron_shapes[0])) == "attention_norm q kv o ffn_norm gate_up down ");
  CHECK(names(read_hugging_face(config("llama-2-7b"))) ==
        "q k v o gate up down attention_norm ffn_norm ");
  CHECK(names(read_hugging_face(config("qwen3-14b"))) ==
        "q k v o q_norm k_norm gate up down attention_norm ffn_norm ");
  CHECK(names(read_hugging_face(config("gpt-neox-20b"))) ==
        "attention_norm attention_norm ffn_norm ffn_norm qkv qkv o o up up down down ");
  CHECK(names(read_hugging_face(config("opt-13b"))) ==
        "q q k k v v o o attention_norm attention_norm up up down down ffn_norm ffn_norm ");
  const auto all =
      parameters_in_order(build_graph({.network = megatron(megatron_shapes[0]), .sequence = 1}));
  CHECK(all.front().name == "embedding.tokens.weight");
  CHECK(all.back().name == "head.projection.weight");
  CHECK(all[all.size() - 2].name == "head.final_norm.weight");
}

// BERT base: tables (30522 + 512 + 2)·768 and norm; 12 blocks of 4·(768² + 768) + 2·768·3072 + 3072
// + 768 + 2·1536 = 7,087,872. The bare model adds the pooler, 768² + 768; the masked head adds that
// dense layer, a norm and a bias per token of the vocabulary.
TEST_CASE("an encoder counts the head that its architecture names", "[parameters]") {
  const std::int64_t body = (30522 + 512 + 2) * 768LL + 1536 + 12 * 7087872LL;
  const auto count = [](const std::string& name) {
    return parameters_of(read_hugging_face(config(name)));
  };
  CHECK(body + 768 * 768 + 768 == 109482240);
  CHECK(count("bert-base") == 109482240);
  CHECK(count("bert-base-masked") == body + 768 * 768 + 768 + 1536 + 30522);
  CHECK(count("bert-base-masked") == 109514298);
}

TEST_CASE("tensor-parallel ranks hold their share and report the whole", "[parameters]") {
  Workload w{.network = megatron(megatron_shapes[2]), .sequence = 2048};
  const auto held = [&w] {
    std::int64_t total = 0;
    for (const Parameter& p : parameters_in_order(build_graph(w))) total += p.elements;
    return total;
  };
  const std::int64_t norms = (2 * 80 + 1) * 8192;
  w.tensor_parallel = 4;
  CHECK(build_graph(w).parameters == 68605452288);
  CHECK(held() == (68605452288 - norms) / 4 + norms);
  w.tensor_parallel = 8;  // 4 key-value heads on 8 ranks: each on two
  const std::int64_t kv = 80LL * 8192 * 2 * 4 * 128;
  CHECK(held() == (68605452288 - norms - kv) / 8 + kv / 4 + norms);
}
