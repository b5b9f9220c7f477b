#include "validate/log/reader.hpp"

#include <charconv>

namespace tidegate {
namespace {

// Settings as DeepSpeed's and Megatron's start-up prints call them.
constexpr std::array<NamePair, 10> setting_names = {
    {{"train_batch_size", "global_batch"},
     {"global_batch_size", "global_batch"},
     {"train_micro_batch_size_per_gpu", "micro_batch"},
     {"micro_batch_size", "micro_batch"},
     {"gradient_accumulation_steps", "accumulation"},
     {"world_size", "gpus"},
     {"seq_length", "sequence"},
     {"tensor_model_parallel_size", "tensor_parallel"},
     {"pipeline_model_parallel_size", "pipeline_parallel"},
     {"zero_optimization_stage", "zero_stage"}}};
// As the Trainer's start says them (src/transformers/trainer.py).
constexpr std::array<NamePair, 4> trainer_names = {
    {{"Total train batch size (w. parallel, distributed & accumulation) = ", "global_batch"},
     {"Instantaneous batch size per device = ", "micro_batch"},
     {"Gradient Accumulation steps = ", "accumulation"},
     {"Number of trainable parameters = ", "parameters"}}};

std::optional<std::int64_t> whole(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ',') digits += c;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 0)
    return std::nullopt;
  return value;
}

}  // namespace

// training_log (megatron/training/training.py) and its descendants; some write name=value.
void LogReader::read_megatron(LogLine& line) {
  const bool has_equals = line.has("elapsed_time_per_iteration_ms=");
  if (has_equals || line.has("elapsed time per iteration (ms):")) {
    wrote("Megatron");
    if (const auto v = line.number_after(has_equals ? "elapsed_time_per_iteration_ms="
                                                    : "elapsed time per iteration (ms):"))
      add(log_.series, "iteration", line.rank(), 1e-3 * *v);
    for (const std::string_view key : {"global batch size:", "global_batch_size="}) {
      if (!line.has(key)) continue;
      if (const auto v = line.number_after(key))
        set("global_batch", static_cast<std::int64_t>(*v), 0);
    }
    for (const std::string_view key :
         {"throughput per GPU (TFLOP/s/GPU):", "approx flops per GPU:"}) {
      if (!line.has(key)) continue;
      if (const auto v = line.number_after(key))
        add(log_.series, "tflops_per_gpu", line.rank(), *v);
    }
  }
  if (!line.has("): (") && !line.has(".: (")) return;
  if (const auto timer = line.dotted_timer()) {
    wrote("Megatron");
    const std::string_view name = megatron_phase(timer->name);
    add(name.empty() ? log_.timers : megatron_phases_,
        name.empty() ? timer->name : std::string(name), line.rank(), 1e-3 * timer->value);
  }
}

// The summary that Trainer.train ends with: a printed dict, or "train_samples_per_second = 1.2".
void LogReader::read_trainer(LogLine& line, std::string_view text) {
  constexpr std::string_view key = "train_samples_per_second";
  if (const std::size_t at = text.find(key); at != std::string_view::npos) {
    const std::size_t value = text.find_first_not_of(" '\"", at + key.size());
    if (value != std::string_view::npos && (text[value] == ':' || text[value] == '=')) {
      wrote("Trainer");
      const auto whole_key = text.substr(at, value + 1 - at);
      if (const auto v = line.number_after(whole_key)) {
        log_.is_run_average = !log_.series.contains("samples_per_second");
        add(log_.is_run_average ? log_.series : log_.timers,
            log_.is_run_average ? "samples_per_second" : std::string(key), 0, *v);
      }
    }
  }
  for (const NamePair& n : trainer_names) {
    const std::size_t at = text.find(n.written);
    if (at == std::string_view::npos) continue;
    // Other scripts count their parameters in the same words.
    if (n.name != "parameters") wrote("Trainer");
    const std::string_view rest = text.substr(at + n.written.size());
    set(n.name, whole(rest.substr(0, rest.find_first_not_of("0123456789,"))), at);
  }
}

void LogReader::read_settings(LogLine& line, std::string_view text) {
  const auto setting = line.setting();
  if (!setting) return;
  const std::string_view name = name_in(setting_names, setting->name);
  if (!name.empty()) set(name, whole(setting->value), text.find(setting->name));
}

// The first print counts: batch sizes may grow later (rampup), and that is said where it happens.
void LogReader::set(std::string_view name, std::optional<std::int64_t> value, std::size_t column) {
  if (!value) return;
  log_.settings.try_emplace(
      std::string(name),
      LoggedSetting{*value,
                    {log_.file, static_cast<int>(log_.lines), static_cast<int>(column) + 1}});
}

}  // namespace tidegate
