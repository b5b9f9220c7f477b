#include <fmt/core.h>

#include "sim/deepspeed/reading.hpp"

namespace tidegate {
namespace {

// TrainingArguments of transformers: per_device_train_batch_size.
constexpr std::int64_t trainer_micro_batch = 8;

struct Key {
  std::optional<yaml::Node> node;
  std::optional<std::int64_t> value;  // nothing: missing or "auto"
};

Key read_key(Reading& reading, yaml::Map& top, const char* name) {
  Key key{top.find(name), std::nullopt};
  if (key.node && !is_auto(*key.node)) key.value = reading.elements(*key.node, 1);
  return key;
}

void say_filled(Reading& reading, const Key& key, std::int64_t value, const char* from) {
  if (!key.node || !is_auto(*key.node)) return;
  reading.remark(RemarkKind::filled, *key.node, fmt::format("auto is {} here{}", value, from));
}

// The whole divided by what is known of it; a problem of `node` when that leaves a rest.
std::int64_t part(const yaml::Node& node, std::int64_t whole, std::int64_t known,
                  const std::string& what) {
  if (whole % known == 0) return whole / known;
  node.problem(
      fmt::format("is {}, which {} do not divide; write a multiple of {}", whole, what, known));
  return 1;
}

// With train_batch_size, two of three give the third; alone it is the micro-batches of all ranks.
void divide(const DeepSpeedSetting& setting, const Key& all, Key& micro, Key& steps) {
  const std::int64_t ranks = setting.data_parallel;
  const std::string of_ranks = fmt::format("{} data-parallel ranks", ranks);
  if (!micro.value && !steps.value && setting.micro_batch) micro.value = setting.micro_batch;
  if (micro.value && steps.value) {
    const std::int64_t product = *micro.value * *steps.value * ranks;
    if (product != *all.value) {
      all.node->problem(
          fmt::format("is {}, but {} sequences x {} steps x {} are {}; write {} or auto",
                      *all.value, *micro.value, *steps.value, of_ranks, product, product));
    }
  } else if (micro.value) {
    steps.value = part(*all.node, *all.value, *micro.value * ranks,
                       fmt::format("{} sequences on {}", *micro.value, of_ranks));
  } else {
    if (!steps.value) steps.value = 1;
    micro.value = part(*all.node, *all.value, *steps.value * ranks,
                       fmt::format("{} steps of {}", *steps.value, of_ranks));
  }
}

}  // namespace

void read_batch(Reading& reading, yaml::Map& top) {
  const Key all = read_key(reading, top, "train_batch_size");
  Key micro = read_key(reading, top, "train_micro_batch_size_per_gpu");
  Key steps = read_key(reading, top, "gradient_accumulation_steps");
  const DeepSpeedSetting& setting = reading.setting;
  const bool needs_default = !all.value && !micro.value && !setting.micro_batch;
  const bool is_filled_in = micro.node || all.node;
  const Key read_micro = micro, read_steps = steps;
  if (all.value) {
    divide(setting, all, micro, steps);
  } else {
    const std::int64_t usual = is_filled_in ? trainer_micro_batch : 1;
    if (!micro.value) micro.value = setting.micro_batch.value_or(usual);
    if (!steps.value) steps.value = setting.accumulation.value_or(1);
  }
  if (needs_default && !is_filled_in) {
    add_remark(
        reading.run.remarks,
        {RemarkKind::refused, top.node().where(), "train_batch_size",
         "is missing, as is train_micro_batch_size_per_gpu, and DeepSpeed needs one of them; "
         "predicted with one sequence"});
  }
  const char* from = needs_default ? ", TrainingArguments' per_device_train_batch_size; "
                                     "--micro-batch for another"
                                   : "";
  reading.run.micro_batch = *micro.value;
  reading.run.accumulation = *steps.value;
  if (!read_micro.value) say_filled(reading, micro, *micro.value, from);
  if (!read_steps.value) say_filled(reading, steps, *steps.value, "");
  if (!all.value) say_filled(reading, all, *micro.value * *steps.value * setting.data_parallel, "");
}

}  // namespace tidegate
