#include "sim/graph/hugging_face.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "models/base/file_kind.hpp"

namespace tidegate {

Activation activation_of(Config& config, const char* key, const char* fallback) {
  const std::string text = config.text_or(key, fallback);
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (has("gelu")) return Activation::gelu;
  if (has("relu")) return Activation::relu;
  if (has("silu") || has("swish") || has("swiglu")) return Activation::silu;
  config.problem({key}, fmt::format("is '{}'; one of: gelu, gelu_new, relu, silu", text));
  return Activation::gelu;
}

void check_heads(Config& config, const Network& n, Keys heads_keys, bool has_own_head_dim) {
  if (!has_own_head_dim && n.hidden > 1 && n.hidden % n.heads != 0) {
    config.problem(heads_keys,
                   fmt::format("is {}, which does not divide the hidden size {}; change "
                               "one, or give head_dim",
                               n.heads, n.hidden));
  }
  if (n.kv_heads > 0 && n.heads > 1 && n.heads % n.kv_heads != 0) {
    config.problem({"num_key_value_heads"},
                   fmt::format("is {}, which does not divide the {} query heads; use a divisor",
                               n.kv_heads, n.heads));
  }
}

std::string excess_of(const Network& n) {
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  const double h = real(n.hidden), experts = real(std::max<std::int64_t>(n.experts, 1));
  const double block = 4 * h * real(n.heads) * real(n.head_dim) + 3 * h * real(n.ffn) * experts;
  const double blocks = real(n.layers) + real(n.encoder_layers);
  const double total = 2 * blocks * block + 2 * h * (real(n.vocabulary) + real(n.max_positions));
  if (blocks > 1e5) return fmt::format("has {:.0f} blocks; at most 100000 are supported", blocks);
  if (blocks * experts > 1e6) {
    return fmt::format("has {:.0f} experts in all blocks; at most 1000000 are supported",
                       blocks * experts);
  }
  if (total > 1e15)
    return fmt::format("has some {:.0e} parameters; at most 1e15 are supported", total);
  return "";
}

namespace {

struct FamilyReader {
  std::string_view name;
  Network (*read)(Config&);
};
constexpr std::array families = {
    FamilyReader{"llama", read_llama},       FamilyReader{"mistral", read_mistral},
    FamilyReader{"mixtral", read_mixtral},   FamilyReader{"qwen2", read_qwen2},
    FamilyReader{"qwen3", read_qwen3},       FamilyReader{"qwen3_moe", read_qwen3_moe},
    FamilyReader{"gemma", read_gemma},       FamilyReader{"opt", read_opt},
    FamilyReader{"gpt2", read_gpt2},         FamilyReader{"bloom", read_bloom},
    FamilyReader{"gpt_neox", read_gpt_neox}, FamilyReader{"t5", read_t5},
    FamilyReader{"bert", read_bert},         FamilyReader{"roberta", read_roberta},
};

const FamilyReader* family_of(yaml::Map& map) {
  std::array<std::string_view, families.size()> names;
  std::ranges::transform(families, names.begin(), &FamilyReader::name);
  if (!map.has("model_type")) {
    map.at("model_type");
    return nullptr;
  }
  const yaml::Node node = map.at("model_type");
  const std::size_t chosen = node.choice(names);
  return node.is_scalar() && names[chosen] == node.value().text ? &families[chosen] : nullptr;
}

// `architectures` names the class that the checkpoint was saved from, and with it the head.
void read_head(yaml::Map& map, Network& n) {
  const auto classes = map.find("architectures");
  if (!classes || classes->is_null()) return;
  const std::vector<yaml::Node> items = classes->items();
  if (items.empty()) return;
  const std::string name = items.front().text();
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  if (n.family == Family::encoder && has("ForMaskedLM")) {
    n.head = Head::masked_language_model;
  } else if (has("Classification") || has("QuestionAnswering") || has("ForPreTraining") ||
             has("MultipleChoice") || has("NextSentence") || has("DoubleHeads")) {
    items.front().problem(
        fmt::format("is '{}', whose head is not supported; use the class with the "
                    "language-model head or the bare model",
                    name));
  }
}

}  // namespace

Network read_hugging_face(const std::string& path) {
  yaml::Value root = yaml::load_file(path);
  expect(FileKind::network, root);
  yaml::Document document(std::move(root));
  Network network;
  {
    yaml::Map map = document.root().map();
    map.ignore_rest();
    if (const FamilyReader* family = family_of(map)) {
      Config config(map);
      network = family->read(config);
      network.name = family->name;
      read_head(map, network);
      if (const std::string excess = excess_of(network); !excess.empty())
        map.node().problem(excess);
      if (network.experts > 0 && network.experts_per_token > network.experts) {
        config.problem({"num_experts_per_tok"},
                       fmt::format("is {}, more than the {} experts there are",
                                   network.experts_per_token, network.experts));
      }
    }
  }
  document.finish();
  return network;
}

Workload workload_of(Network network) {
  Workload workload;
  workload.network = std::move(network);
  const std::int64_t context = workload.network.context;
  workload.sequence = context > 0 ? std::min<std::int64_t>(context, 2048) : 2048;
  return workload;
}

}  // namespace tidegate
