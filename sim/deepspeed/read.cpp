#include "sim/deepspeed/read.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/core.h>

#include "sim/deepspeed/reading.hpp"

namespace tidegate {
namespace {

// An element count of zero_optimization. "auto" is what HfTrainerDeepSpeedConfig of transformers
// (integrations/deepspeed.py, trainer_config_finalize) puts there: squares · hidden² + widths ·
// hidden; where it puts nothing, DeepSpeed drops the key (config_utils.py) and has its default.
// Defaults: deepspeed/runtime/zero/config.py.
struct ElementKey {
  const char* theirs;
  const char* alias;  // the field's own name, which DeepSpeed takes as well
  const char* ours;
  std::int64_t fallback, least;
  std::int64_t tenths_of_square = 0, widths = 0;
  bool needs_stage_3 = true;
};
constexpr std::array<ElementKey, 5> element_keys = {{
    {"reduce_bucket_size", "", "reduce_bucket_size", 500'000'000, 1, 10, 0, false},
    {"stage3_prefetch_bucket_size", "prefetch_bucket_size", "prefetch_bucket_size", 50'000'000, 0,
     9},
    {"stage3_param_persistence_threshold", "param_persistence_threshold",
     "param_persistence_threshold", 100'000, 0, 0, 10},
    {"stage3_max_live_parameters", "max_live_parameters", "max_live_parameters", 1'000'000'000, 1},
    {"stage3_max_reuse_distance", "max_reuse_distance", "max_reuse_distance", 1'000'000'000, 0},
}};

std::int64_t auto_elements(Reading& reading, const yaml::Node& node, const ElementKey& key) {
  const std::int64_t hidden = reading.setting.hidden;
  const bool is_filled_by_trainer = key.tenths_of_square + key.widths > 0;
  if (!is_filled_by_trainer || hidden == 0) {
    reading.remark(RemarkKind::filled, node,
                   fmt::format("auto is left to DeepSpeed's default {}", key.fallback));
    return key.fallback;
  }
  const std::int64_t value = key.tenths_of_square * hidden * hidden / 10 + key.widths * hidden;
  const std::string formula = key.widths > 0 ? fmt::format("{} x hidden size", key.widths)
                              : key.tenths_of_square == 10
                                  ? "hidden size squared"
                                  : fmt::format("0.{} x hidden size squared", key.tenths_of_square);
  reading.remark(RemarkKind::filled, node,
                 fmt::format("auto is {} with the Hugging Face Trainer: {}", value, formula));
  return value;
}

void read_elements(Reading& reading, yaml::Map& zero, std::int64_t stage) {
  for (const ElementKey& key : element_keys) {
    auto node = zero.find(key.theirs);
    if (!node && *key.alias != 0) node = zero.find(key.alias);
    const bool has_effect = stage > 0 && (stage == 3 || !key.needs_stage_3);
    std::int64_t value = key.fallback;
    if (node && !has_effect) {
      reading.remark(RemarkKind::ignored, *node, fmt::format("has no effect at stage {}", stage));
    }
    if (!has_effect) continue;
    if (node && is_auto(*node)) {
      value = auto_elements(reading, *node, key);
    } else if (node) {
      value = reading.elements(*node, 0);
    }
    const Where& where = node ? node->where() : zero.node().where();
    reading.put(std::string("zero.") + key.ours, std::to_string(std::max(value, key.least)), where);
  }
}

// Reductions run beside backward here. DeepSpeed's default is that at stage 3 alone
// (zero/config.py, overlap_comm_valid).
void read_overlap(Reading& reading, yaml::Map& zero, std::int64_t stage) {
  const auto node = zero.find("overlap_comm");
  const bool is_given = node && !is_auto(*node);
  const bool overlaps = is_given ? node->flag() : stage == 3;
  if (overlaps || stage == 0) return;
  add_remark(reading.run.remarks,
             {RemarkKind::not_simulated, node ? node->where() : zero.node().where(),
              "zero_optimization.overlap_comm",
              fmt::format("is false{}; predicted as if reductions ran beside backward",
                          is_given ? "" : " by default below stage 3")});
}

// Before it was a map, zero_optimization was true or false (zero/config.py,
// read_zero_config_deprecated).
void read_deprecated_zero(Reading& reading, yaml::Map& top, const yaml::Node& node) {
  reading.put("zero.stage", node.flag() ? "1" : "0", node.where());
  reading.remark(RemarkKind::changed, node, "deprecated form: true means {\"stage\": 1}");
  yaml::Map empty(reading.section_of({}, top.node(), "zero_optimization"));
  read_offload(reading, top, empty, node.value().text == "true" ? 1 : 0);
}

void read_zero(Reading& reading, yaml::Map& top) {
  const auto given = top.find("zero_optimization");
  if (given && given->is_scalar()) return read_deprecated_zero(reading, top, *given);
  const yaml::Node node = reading.section_of(given, top.node(), "zero_optimization");
  reading.look_over(node, "zero_optimization");
  yaml::Map zero = node.map();
  zero.ignore_rest();
  const auto stage_node = zero.find("stage");
  const std::int64_t stage = stage_node ? stage_node->count(0, 3) : 0;
  const Where& where = stage_node ? stage_node->where() : top.node().where();
  reading.put("zero.stage", std::to_string(stage), where);
  read_elements(reading, zero, stage);
  const auto scatter = zero.find("reduce_scatter");
  if (stage > 0) {
    const bool scatters = flag_of(zero, "reduce_scatter", true);
    reading.put("zero.reduce_scatter", flag_text(scatters), scatter ? scatter->where() : where);
  }
  read_overlap(reading, zero, stage);
  read_offload(reading, top, zero, stage);
}

// Whether a precision is on; nothing when "auto" leaves it to the trainer.
std::optional<bool> is_enabled(Reading& reading, yaml::Map& top, const char* name,
                               const char* section) {
  const auto node = top.find(name);
  if (!node) return false;
  if (*section != 0) reading.look_over(*node, section);
  yaml::Map map = node->map();
  map.ignore_rest();
  const auto enabled = map.find("enabled");
  if (!enabled) return false;
  if (is_auto(*enabled)) return std::nullopt;
  return enabled->flag();
}

void read_dtype(Reading& reading, yaml::Map& top) {
  const auto bf16 = is_enabled(reading, top, top.has("bf16") ? "bf16" : "bfloat16", "bf16");
  const auto fp16 = is_enabled(reading, top, "fp16", "fp16");
  if (bf16 == true && fp16 == true) {
    top.at("fp16").problem("is enabled beside bf16; DeepSpeed takes one of them");
  }
  if (bf16 == true || fp16 == true) {
    reading.run.dtype = bf16 == true ? "bf16" : "fp16";
  } else if (bf16 && fp16) {
    reading.run.dtype = "fp32";
    if (!top.has("bf16") && !top.has("bfloat16") && !top.has("fp16")) {
      add_remark(reading.run.remarks,
                 {RemarkKind::filled, top.node().where(), "bf16, fp16",
                  "neither is there, so that parameters, gradients and activations are fp32"});
    }
  } else {
    const auto& given = reading.setting.dtype;
    reading.run.dtype = given.value_or("bf16");
    const yaml::Node node = top.at(bf16 ? "fp16" : top.has("bf16") ? "bf16" : "bfloat16");
    reading.remark(RemarkKind::filled, node,
                   fmt::format("auto is what the training script asks for; {} {} here",
                               reading.run.dtype, given ? "as the scenario says" : "is assumed"));
  }
  if (const auto amp = top.find("amp"); amp && is_enabled(reading, top, "amp", "").value_or(false))
    reading.remark(RemarkKind::refused, *amp, "apex does not go with ZeRO");
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void read_optimizer(Reading& reading, yaml::Map& top) {
  const auto node = top.find("optimizer");
  if (!node) return;
  yaml::Map map = node->map();
  map.ignore_rest();
  const auto type = map.find("type");
  const std::string name = type ? lower(type->text()) : "adam";
  if (name != "adam" && name != "adamw") {
    reading.remark(RemarkKind::not_simulated, *type, "predicted as Adam, with two fp32 moments");
  }
  const auto params = map.find("params");
  if (!params) return;
  yaml::Map options = params->map();
  options.ignore_rest();
  // deepspeed/runtime/engine.py, _configure_basic_optimizer.
  if (const auto norm = options.find("max_grad_norm")) {
    reading.remark(RemarkKind::refused, *norm,
                   "no option of the optimizer; write gradient_clipping at the top level");
  }
}

void read_rest(Reading& reading, yaml::Map& top) {
  if (const auto node = top.find("activation_checkpointing"))
    reading.look_over(*node, "activation_checkpointing");
  const auto types = top.find("data_types");
  if (!types) return;
  reading.look_over(*types, "data_types");
  yaml::Map map = types->map();
  map.ignore_rest();
  const auto gradients = map.find("grad_accum_dtype");
  if (!gradients || is_auto(*gradients) || gradients->is_null()) return;
  const std::string dtype = gradients->text();
  if (dtype != reading.run.dtype) {
    reading.remark(RemarkKind::not_simulated, *gradients,
                   fmt::format("predicted as {}, the type of the parameters", reading.run.dtype));
  }
}

}  // namespace

DeepSpeedRun read_deepspeed(const yaml::Value& file, const DeepSpeedSetting& setting) {
  yaml::Document document(file);
  const yaml::Value nothing{.kind = yaml::Value::Kind::map, .where = file.where};
  Reading reading{setting, {.policy = nothing}, nothing};
  {
    yaml::Map top = document.root().map();
    top.ignore_rest();
    reading.look_over(top.node(), "");
    read_batch(reading, top);
    read_dtype(reading, top);
    read_zero(reading, top);
    read_optimizer(reading, top);
    read_rest(reading, top);
  }
  document.finish();
  return std::move(reading.run);
}

}  // namespace tidegate
