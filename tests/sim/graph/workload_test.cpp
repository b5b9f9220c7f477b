#include <filesystem>
#include <fstream>
#include <string>

#include "tests/catch.hpp"
#include "tests/sim/graph/networks.hpp"

using namespace tidegate;

namespace {

const std::string shape =
    "network:\n  layers: 4\n  hidden: 64\n  heads: 4\n  vocabulary: 1000\nsequence: 16\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// What reading a config.json of this content says is wrong.
std::string config_fault(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / "tidegate_workload_test.json";
  std::ofstream(path) << text;
  std::string said = "no error";
  try {
    read_hugging_face(path.string());
  } catch (const InputError& error) {
    said = error.what();
  }
  std::filesystem::remove(path);
  return said;
}

std::string llama_text(const std::string& from = "", const std::string& to = "") {
  const std::string text =
      "{\"model_type\": \"llama\",\n\"hidden_size\": 64,\n\"intermediate_size\": 256,\n"
      "\"num_hidden_layers\": 2,\n\"num_attention_heads\": 4,\n\"vocab_size\": 100}";
  return from.empty() ? text : replaced(text, from, to);
}

}  // namespace

TEST_CASE("a built-in network takes the defaults of a dense decoder", "[workload]") {
  const Workload w = workload_from(shape);
  CHECK(w.network.kv_heads == 4);
  CHECK(w.network.head_dim == 16);
  CHECK(w.network.ffn == 256);
  CHECK(w.micro_batch == 1);
  CHECK(w.dtype == DType::bf16);
  CHECK(build_graph(w).layers.size() == 6);
}

TEST_CASE("a configuration file stands in for the shape", "[workload]") {
  const Workload w = workload_from(
      "name: mine\nconfig: hf_configs/llama-2-7b.json\nsequence: 4096\nmicro_batch: 2\n"
      "tensor_parallel: 4\nsequence_parallel: true\nkernels: {flash_attention: false}\n");
  CHECK(w.network.name == "mine");
  CHECK_FALSE(w.kernels.flash_attention);
  const LayerGraph graph = build_graph(w);
  CHECK(graph.parameters == 6738415616);
  CHECK(graph.tokens == 8192);
}

TEST_CASE("faults of a built-in network are located", "[workload]") {
  CHECK_THAT(fault_of(replaced(shape, "hidden", "hiden")),
             Containing("in.yaml:3:3: network.hiden: unknown key; did you mean 'hidden'?"));
  CHECK_THAT(fault_of(replaced(shape, "layers: 4", "layers: 0")),
             Containing("in.yaml:2:11: network.layers: is 0; it must be at least 1"));
  CHECK_THAT(fault_of(replaced(shape, "hidden: 64", "hidden: -64")),
             Containing("in.yaml:3:11: network.hidden: is -64; it must be at least 1"));
  CHECK_THAT(fault_of(replaced(shape, "heads: 4", "heads: 5")),
             Containing("in.yaml:4:10: network.heads: is 5, which does not divide hidden 64"));
  CHECK_THAT(fault_of(replaced(shape, "heads: 4", "heads: 4\n  kv_heads: 3")),
             Containing("network.kv_heads: is 3, which does not divide the 4 heads"));
  CHECK_THAT(
      fault_of(replaced(shape, "heads: 4", "heads: 4\n  experts: 2\n  experts_per_token: 3")),
      Containing("network.experts_per_token: is 3, more than the 2 experts"));
  CHECK_THAT(fault_of(replaced(shape, "sequence: 16\n", "")), Containing("sequence: is missing"));
  CHECK_THAT(
      fault_of(replaced(shape, "heads: 4", "heads: 4\n  positions: learned\n  max_positions: 8")),
      Containing("sequence: is 16, but the table of positions has 8 rows"));
  CHECK_THAT(fault_of(shape + "config: a.json\n"), Containing("give exactly one"));
  CHECK_THAT(fault_of("sequence: 1\n"), Containing("none of config, network and layers"));
  CHECK_THAT(fault_of("config: absent.json\nsequence: 1\n"),
             Containing("in.yaml:1:9: config: 'absent.json' is not a file"));
}

TEST_CASE("sizes beyond exact counting are refused, not built", "[workload]") {
  CHECK_THAT(fault_of(replaced(shape, "layers: 4", "layers: 200000")),
             Containing("network: has 200000 blocks; at most 100000 are supported"));
  CHECK_THAT(fault_of(replaced(shape, "hidden: 64", "hidden: 4000000000000")),
             Containing("parameters; at most 1e15 are supported"));
  CHECK_THAT(fault_of(replaced(shape, "sequence: 16", "sequence: 10000000\nmicro_batch: 1000000")),
             Containing("tensors of more than 1e18 elements"));
  CHECK_THAT(config_fault(llama_text("layers\": 2", "layers\": 100000000000")),
             Containing("has 100000000000 blocks"));
}

TEST_CASE("tensor parallelism that cuts unevenly is refused where it is written", "[workload]") {
  const auto with = [](const std::string& lines) { return fault_of(shape + lines); };
  CHECK_THAT(with("tensor_parallel: 8\n"),
             Containing("in.yaml:7:18: tensor_parallel: is 8, which does not divide the 4 heads"));
  CHECK_THAT(
      fault_of(replaced(shape, "1000", "1002") + "tensor_parallel: 4\n"),
      Containing("does not divide the vocabulary of 1002; pad it (Megatron pads to a multiple of "
                 "128 x 4: 1024)"));
  CHECK_THAT(fault_of(replaced(shape, "heads: 4", "heads: 4\n  ffn: 30") + "tensor_parallel: 4\n"),
             Containing("does not divide the 30 feed-forward width"));
  CHECK_THAT(fault_of(replaced(shape, "sequence: 16", "sequence: 15") +
                      "tensor_parallel: 4\nsequence_parallel: true\n"),
             Containing("does not divide the 15 tokens"));
  CHECK_THAT(with("sequence_parallel: true\n"), Containing("needs tensor_parallel of 2 or more"));
  CHECK(fault_of(replaced(shape, "heads: 4", "heads: 4\n  kv_heads: 2") + "tensor_parallel: 4\n") ==
        "no error");
}

TEST_CASE("faults of a config.json are located", "[workload]") {
  CHECK(config_fault(llama_text()) == "no error");
  CHECK_THAT(config_fault(llama_text("\"llama\"", "\"mistrall\"")),
             Containing(":1:16: model_type: is 'mistrall'; one of: llama, mistral"));
  CHECK_THAT(config_fault(llama_text("\"llama\"", "\"mistrall\"")),
             Containing("did you mean 'mistral'"));
  CHECK_THAT(config_fault("{\"hidden_size\": 4}"), Containing("model_type: is missing"));
  CHECK_THAT(config_fault(llama_text("\"vocab_size\"", "\"vocab\"")),
             Containing("vocab_size: is missing"));
  CHECK_THAT(config_fault(llama_text("layers\": 2", "layers\": 0")),
             Containing(":4:22: num_hidden_layers: is 0; it must be at least 1"));
  CHECK_THAT(config_fault(llama_text("\"hidden_size\": 64", "\"hidden_size\": -64")),
             Containing(":2:16: hidden_size: is -64; it must be at least 1"));
  CHECK_THAT(config_fault(llama_text("\"hidden_size\": 64", "\"hidden_size\": [64]")),
             Containing("hidden_size: is a list; a whole number is expected"));
  CHECK_THAT(
      config_fault(llama_text("heads\": 4", "heads\": 5")),
      Containing(":5:24: num_attention_heads: is 5, which does not divide the hidden size 64"));
  CHECK(config_fault(llama_text("heads\": 4", "heads\": 5,\n\"head_dim\": 16")) == "no error");
  CHECK_THAT(config_fault(llama_text("heads\": 4", "heads\": 4,\n\"num_key_value_heads\": 3")),
             Containing("num_key_value_heads: is 3, which does not divide the 4 query heads"));
  CHECK_THAT(
      config_fault(llama_text("{", "{\"architectures\": [\"LlamaForSequenceClassification\"],")),
      Containing("architectures[0]: is 'LlamaForSequenceClassification', whose head"));
  CHECK_THAT(config_fault(llama_text("{\"model_type\": \"llama\"",
                                     "{\"model_type\": \"qwen2\", \"num_key_value_heads\": 2,"
                                     "\"use_sliding_window\": true, \"max_window_layers\": 1")),
             Containing("use_sliding_window: switches the window on for some blocks only"));
  CHECK_THAT(config_fault("[1]"), Containing("a map of keys is expected"));
  CHECK_THAT(
      config_fault("{\"model_type\": \"opt\", \"hidden_size\": 1024, \"ffn_dim\": 4096,"
                   "\"num_hidden_layers\": 24, \"num_attention_heads\": 16, \"vocab_size\": 50272,"
                   "\"max_position_embeddings\": 2048, \"word_embed_proj_dim\": 512}"),
      Containing("word_embed_proj_dim: is 512: embeddings of another width"));
}

TEST_CASE("a fault of a config.json is reported with the scenario's own", "[workload]") {
  const auto folder = std::filesystem::temp_directory_path();
  std::ofstream(folder / "tidegate_falcon.json") << "{\"model_type\": \"falcon\"}";
  const std::string said =
      fault_of("config: " + (folder / "tidegate_falcon.json").string() + "\nsequence: 0\n");
  std::filesystem::remove(folder / "tidegate_falcon.json");
  CHECK_THAT(said, Containing("tidegate_falcon.json:1:16: model_type: is 'falcon'"));
  CHECK_THAT(said, Containing("in.yaml:2:11: sequence: is 0"));
}

TEST_CASE("families take the defaults of their configuration class", "[workload]") {
  const auto read = [](const std::string& family) {
    const auto path = std::filesystem::temp_directory_path() / "tidegate_family.json";
    std::ofstream(path) << replaced(
        replaced(replaced(llama_text(), "llama", family), "heads\": 4", "heads\": 32"),
        "hidden_size\": 64", "hidden_size\": 4096");
    const Network network = read_hugging_face(path.string());
    std::filesystem::remove(path);
    return network;
  };
  CHECK(read("llama").kv_heads == 32);
  CHECK(read("llama").sliding_window == 0);
  CHECK(read("mistral").kv_heads == 8);
  CHECK(read("mistral").sliding_window == 4096);
  CHECK(read("mixtral").experts == 8);
  CHECK(read("qwen3").head_dim == 128);
  CHECK(read("qwen2").sliding_window == 0);
  CHECK(read("gemma").is_tied);
  CHECK_FALSE(read("gpt_neox").is_tied);
  CHECK(read("gpt_neox").rotary_fraction == 0.25);
}
