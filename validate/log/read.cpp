#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <string_view>

#include <fmt/core.h>

#include "validate/log/line.hpp"
#include "validate/log/log.hpp"

namespace tidegate {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024, mib = 1024.0 * 1024;

// DeepSpeed's timers of a whole iteration: forward, … until July 2023, fwd, … since
// (deepspeed/runtime/engine.py; the earlier names in issues 1436 and 3742).
struct PhaseName {
  std::string_view written, name;
};
constexpr std::array<PhaseName, 9> phase_names = {{{"fwd", "forward"},
                                                   {"forward", "forward"},
                                                   {"bwd", "backward"},
                                                   {"backward", "backward"},
                                                   {"step", "update"},
                                                   {"bwd_inner", "backward_inner"},
                                                   {"backward_inner", "backward_inner"},
                                                   {"bwd_allreduce", "backward_allreduce"},
                                                   {"backward_allreduce", "backward_allreduce"}}};
// Megatron's (megatron/training.py).
constexpr std::array<PhaseName, 5> megatron_names = {{{"forward-compute", "forward"},
                                                      {"backward-compute", "backward"},
                                                      {"forward", "forward"},
                                                      {"backward", "backward"},
                                                      {"optimizer", "update"}}};

template <std::size_t N>
std::string_view name_in(const std::array<PhaseName, N>& names, std::string_view written) {
  const auto at = std::ranges::find(names, written, &PhaseName::written);
  return at == names.end() ? std::string_view{} : at->name;
}

// Settings as DeepSpeed's and Megatron's start-up prints call them.
constexpr std::array<PhaseName, 10> setting_names = {
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
constexpr std::array<PhaseName, 4> trainer_names = {
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

class Reader {
 public:
  explicit Reader(const std::string& name) { log_.file = name; }

  void read(std::string_view text) {
    ++log_.lines;
    LogLine line(text);
    if (line.has("time (ms)")) read_timers(line);
    read_speed(line);
    read_memory(line);
    read_megatron(line);
    read_trainer(line, text);
    read_settings(line, text);
    for (const Damage& d : line.damages())
      log_.damaged.push_back({{log_.file, static_cast<int>(log_.lines), d.column}, d.key, d.text});
  }

  void cut() { log_.is_cut = true; }

  TrainingLog finish() {
    // The pipeline engine's timers run on between prints, over steps_per_print steps.
    if (is_pipeline_engine_) {
      for (const char* name : {"forward", "backward", "update", "phases", "micro_steps"}) {
        const auto at = log_.series.find(name);
        if (at == log_.series.end()) continue;
        log_.timers[std::string(name) + " between two prints"] = std::move(at->second);
        log_.series.erase(at);
      }
    }
    for (const auto& [name, values] : megatron_phases_) {
      // GPT-NeoX prints Megatron's timers beside DeepSpeed's, of the same iterations.
      const bool is_known = log_.series.contains(name);
      (is_known ? log_.timers : log_.series)[is_known ? "Megatron " + name : name] = values;
    }
    return std::move(log_);
  }

 private:
  void add(LoggedSeries& to, const std::string& name, std::int32_t rank, double value) {
    to[name].push_back({rank, static_cast<int>(log_.lines), value});
  }
  void wrote(const char* writer) {
    if (std::ranges::find(log_.writers, writer) == log_.writers.end())
      log_.writers.emplace_back(writer);
  }
  void read_timers(LogLine& line);
  void close(std::int32_t rank, const std::vector<NamedNumber>& timers);
  bool add_memory(std::int32_t rank, const NamedNumber& timer);
  void read_speed(LogLine& line);
  void read_memory(LogLine& line);
  void read_megatron(LogLine& line);
  void read_trainer(LogLine& line, std::string_view text);
  void read_settings(LogLine& line, std::string_view text);
  void set(std::string_view name, std::optional<std::int64_t> value, std::size_t column);

  TrainingLog log_;
  LoggedSeries megatron_phases_;
  bool is_pipeline_engine_ = false;
  std::map<std::int32_t, double> micro_steps_;
  // Timers of a step are printed before the line that ends it, some more than once.
  std::map<std::int32_t, std::map<std::string, double>> pending_;
};

bool is_megatron(const std::vector<NamedNumber>& timers) {
  return std::ranges::any_of(timers, [](const NamedNumber& t) {
    return t.name == "optimizer" || t.name.starts_with("forward-") || t.name == "batch generator" ||
           t.name == "batch-generator";
  });
}

// "mem_allocated: 1.2345 GB" that early versions of DeepSpeed added to their timers.
bool Reader::add_memory(std::int32_t rank, const NamedNumber& timer) {
  if (timer.name == "max_mem_allocated") add(log_.series, "gpu_allocated", rank, gib * timer.value);
  if (timer.name == "max_cache_allocated")
    add(log_.series, "gpu_reserved", rank, gib * timer.value);
  return timer.name.ends_with("_allocated");
}

void Reader::read_timers(LogLine& line) {
  const std::vector<NamedNumber> timers = line.timers();
  if (timers.empty()) return;
  const std::int32_t rank = line.rank();
  if (is_megatron(timers)) {
    wrote("Megatron");
    for (const NamedNumber& t : timers) {
      const std::string_view name = name_in(megatron_names, t.name);
      add(name.empty() ? log_.timers : megatron_phases_, name.empty() ? t.name : std::string(name),
          rank, 1e-3 * t.value);
    }
    return;
  }
  wrote("DeepSpeed");
  bool is_micro = false, is_whole = false;
  for (const NamedNumber& t : timers) {
    is_micro = is_micro || t.name.starts_with("fwd_micro") || t.name.starts_with("forward_micro");
    is_whole = is_whole || t.name == "step";
  }
  if (is_micro) micro_steps_[rank] += 1;
  if (is_whole) {
    close(rank, timers);
    return;
  }
  for (const NamedNumber& t : timers) {
    // Micro-steps sum to the whole iteration, which has lines of its own.
    if (!add_memory(rank, t) && !t.name.ends_with("_microstep"))
      pending_[rank][t.name] += 1e-3 * t.value;
  }
}

void Reader::close(std::int32_t rank, const std::vector<NamedNumber>& timers) {
  double sum = 0;
  int phases = 0;
  for (const NamedNumber& t : timers) {
    if (add_memory(rank, t)) continue;
    const std::string name(name_in(phase_names, t.name));
    const bool is_phase = name == "forward" || name == "backward" || name == "update";
    add(is_phase ? log_.series : log_.timers, name.empty() ? t.name : name, rank, 1e-3 * t.value);
    if (is_phase) sum += 1e-3 * t.value;
    phases += is_phase ? 1 : 0;
  }
  if (phases == 3) add(log_.series, "phases", rank, sum);
  for (const auto& [name, seconds] : pending_[rank]) add(log_.timers, name, rank, seconds);
  pending_[rank].clear();
  if (micro_steps_[rank] > 0) add(log_.series, "micro_steps", rank, micro_steps_[rank]);
  micro_steps_[rank] = 0;
}

// ThroughputTimer (deepspeed/utils/timer.py): "0/40, SamplesPerSec=83.4, MemAllocated=0.26GB, …",
// later CurrSamplesPerSec beside a running mean; steps the loss scaler skipped (engine.py); the
// pipeline engine's "iter time (s): 0.994 samples/sec: 257.601" (pipe/engine.py).
void Reader::read_speed(LogLine& line) {
  const bool has_current = line.has("CurrSamplesPerSec=");
  if (has_current || line.has(" SamplesPerSec=")) {
    wrote("DeepSpeed");
    if (const auto v = line.number_after(has_current ? "CurrSamplesPerSec=" : " SamplesPerSec="))
      add(log_.series, "samples_per_second", line.rank(), *v);
    if (line.has("MaxMemAllocated=")) {
      if (const auto v = line.number_after("MaxMemAllocated="))
        add(log_.series, "gpu_allocated", line.rank(), gib * *v);
    }
  }
  if (line.has("iter time (s):")) {
    wrote("DeepSpeed");
    is_pipeline_engine_ = true;
    if (const auto v = line.number_after("iter time (s):"))
      add(log_.series, "iteration", line.rank(), *v);
    if (const auto v = line.number_after("samples/sec:"))
      add(log_.series, "samples_per_second", line.rank(), *v);
  }
  if (line.has("skipped=") && line.has("step=")) {
    if (const auto v = line.number_after("skipped="))
      log_.skipped_updates = static_cast<std::int64_t>(*v);
  }
}

// see_memory_usage (deepspeed/runtime/utils.py); report_memory (megatron/training/utils.py).
void Reader::read_memory(LogLine& line) {
  if (line.has("Max_MA ")) {
    if (const auto v = line.number_after("Max_MA "))
      add(log_.series, "gpu_allocated", line.rank(), gib * *v);
    if (const auto v = line.number_after("Max_CA "))
      add(log_.series, "gpu_reserved", line.rank(), gib * *v);
  }
  if (line.has("CPU Virtual Memory:")) {
    if (const auto v = line.number_after("used = "))
      add(log_.series, "host_used", line.rank(), gib * *v);
  }
  if (line.has("memory (MB) |")) {
    if (const auto v = line.number_after("max allocated: "))
      add(log_.series, "gpu_allocated", line.rank(), mib * *v);
    if (const auto v = line.number_after("max reserved: "))
      add(log_.series, "gpu_reserved", line.rank(), mib * *v);
  }
}

// training_log (megatron/training/training.py) and its descendants; some write name=value.
void Reader::read_megatron(LogLine& line) {
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
    const std::string_view name = name_in(megatron_names, timer->name);
    add(name.empty() ? log_.timers : megatron_phases_,
        name.empty() ? timer->name : std::string(name), line.rank(), 1e-3 * timer->value);
  }
}

// The summary that Trainer.train ends with: a printed dict, or "train_samples_per_second = 1.2".
void Reader::read_trainer(LogLine& line, std::string_view text) {
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
  for (const PhaseName& n : trainer_names) {
    const std::size_t at = text.find(n.written);
    if (at == std::string_view::npos) continue;
    wrote("Trainer");
    const std::string_view rest = text.substr(at + n.written.size());
    set(n.name, whole(rest.substr(0, rest.find_first_not_of("0123456789,"))), at);
  }
}

void Reader::read_settings(LogLine& line, std::string_view text) {
  const auto setting = line.setting();
  if (!setting) return;
  const std::string_view name = name_in(setting_names, setting->name);
  if (!name.empty()) set(name, whole(setting->value), text.find(setting->name));
}

// The first print counts: batch sizes may grow later (rampup), and that is said where it happens.
void Reader::set(std::string_view name, std::optional<std::int64_t> value, std::size_t column) {
  if (!value) return;
  log_.settings.try_emplace(
      std::string(name),
      LoggedSetting{*value,
                    {log_.file, static_cast<int>(log_.lines), static_cast<int>(column) + 1}});
}

}  // namespace

bool TrainingLog::has_timings() const {
  for (const char* name : {"forward", "backward", "update", "iteration", "samples_per_second"}) {
    if (series.contains(name)) return true;
  }
  return false;
}

TrainingLog read_log(std::istream& text, const std::string& name) {
  Reader reader(name);
  std::string line;
  bool is_first = true;
  while (std::getline(text, line)) {
    if (is_first && line.starts_with("\x1f\x8b"))
      throw InputError({name, 0, 0}, "", "is compressed with gzip; unpack it first (gunzip)");
    is_first = false;
    // A line without an end is still being written, or was cut off with its process.
    if (text.eof() && !line.ends_with('}')) {
      reader.cut();
      break;
    }
    reader.read(line);
  }
  TrainingLog log = reader.finish();
  if (log.has_timings()) return log;
  if (!log.damaged.empty()) throw InputError(log.damaged);
  throw InputError(
      {name, 0, 0}, "",
      "no timing lines found: is wall_clock_breakdown on? DeepSpeed prints \"time (ms) | fwd: "
      "...\" "
      "with \"wall_clock_breakdown\": true and speeds every steps_per_print steps, Megatron "
      "\"elapsed time per iteration\" every --log-interval, the Trainer train_samples_per_second "
      "at its end");
}

TrainingLog load_log(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError({path, 0, 0}, "", "cannot be read; give a log file");
  return read_log(file, path);
}

}  // namespace tidegate
