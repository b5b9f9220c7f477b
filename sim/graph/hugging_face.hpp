#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "models/base/yaml.hpp"
#include "sim/graph/workload.hpp"

/// One function per family of Hugging Face's config.json.
///
/// Keys and defaults are those of the family's configuration class in the transformers library
/// (src/transformers/models/<family>/configuration_<family>.py), shapes those of its modeling file.
/// Experts are listed one tensor each, as version 4 registers them and checkpoints store them.
/// Sizes without which there is no network must be there.
namespace tidegate {

/// Larger sizes are read as this, which can be multiplied by small numbers; excess_of() refuses it.
constexpr std::int64_t largest_size = 1'000'000'000'000;

using Keys = std::initializer_list<const char*>;

/// A config.json under reading. JSON writes null for "the default"; of several keys for one size,
/// the first that is there counts.
class Config {
 public:
  explicit Config(yaml::Map& map) : map_(map) {}

  std::optional<yaml::Node> find(Keys keys) {
    for (const char* key : keys) {
      const auto node = map_.find(key);
      if (node && !node->is_null()) return node;
    }
    return std::nullopt;
  }
  std::int64_t size(Keys keys) {
    const auto node = find(keys);
    return std::min(node ? node->count(1) : map_.at(*keys.begin()).count(1), largest_size);
  }
  std::int64_t size_or(Keys keys, std::int64_t fallback, std::int64_t least = 1) {
    const auto node = find(keys);
    return std::min(node ? node->count(least) : fallback, largest_size);
  }
  bool flag_or(const char* key, bool fallback) {
    const auto node = find({key});
    return node ? node->flag() : fallback;
  }
  std::string text_or(const char* key, const char* fallback) {
    const auto node = find({key});
    return node ? node->text() : fallback;
  }
  /// A problem at the first of the keys that is there, else at the top of the file.
  void problem(Keys keys, const std::string& text) {
    const auto node = find(keys);
    (node ? *node : map_.node()).problem(text);
  }
  bool is_absent(const char* key) { return !map_.has(key); }

 private:
  yaml::Map& map_;
};

/// The activation that the text at `key` names ("gelu_new", "silu", …).
Activation activation_of(Config& config, const char* key, const char* fallback);

/// Why a network is larger than this program counts exactly (10^5 blocks, 10^6 experts, 10^15
/// parameters), or an
/// empty text.
std::string excess_of(const Network& network);

/// Says when the heads do not divide the hidden size (unless each has a width of its own) or the
/// key-value heads the heads. A size of 1 may stand for a value that was reported already, so only
/// larger ones are judged.
void check_heads(Config& config, const Network& network, Keys heads_keys, bool has_own_head_dim);

Network read_llama(Config& config);
Network read_mistral(Config& config);
Network read_mixtral(Config& config);
Network read_qwen2(Config& config);
Network read_qwen3(Config& config);
Network read_qwen3_moe(Config& config);
Network read_gemma(Config& config);
Network read_opt(Config& config);
Network read_gpt2(Config& config);
Network read_bloom(Config& config);
Network read_gpt_neox(Config& config);
Network read_t5(Config& config);
Network read_bert(Config& config);
Network read_roberta(Config& config);

}  // namespace tidegate
