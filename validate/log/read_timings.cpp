#include "validate/log/reader.hpp"

namespace tidegate {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024, mib = 1024.0 * 1024;

// DeepSpeed's timers of a whole iteration: forward, … until July 2023, fwd, … since
// (deepspeed/runtime/engine.py; the earlier names in issues 1436 and 3742).
constexpr std::array<NamePair, 9> phase_names = {{{"fwd", "forward"},
                                                  {"forward", "forward"},
                                                  {"bwd", "backward"},
                                                  {"backward", "backward"},
                                                  {"step", "update"},
                                                  {"bwd_inner", "backward_inner"},
                                                  {"backward_inner", "backward_inner"},
                                                  {"bwd_allreduce", "backward_allreduce"},
                                                  {"backward_allreduce", "backward_allreduce"}}};
// Megatron's (megatron/training.py).
constexpr std::array<NamePair, 5> megatron_names = {{{"forward-compute", "forward"},
                                                     {"backward-compute", "backward"},
                                                     {"forward", "forward"},
                                                     {"backward", "backward"},
                                                     {"optimizer", "update"}}};

bool is_megatron(const std::vector<NamedNumber>& timers) {
  return std::ranges::any_of(timers, [](const NamedNumber& t) {
    return t.name == "optimizer" || t.name.starts_with("forward-") || t.name == "batch generator" ||
           t.name == "batch-generator";
  });
}

}  // namespace

std::string_view megatron_phase(std::string_view timer) { return name_in(megatron_names, timer); }

// "mem_allocated: 1.2345 GB" that early versions of DeepSpeed added to their timers.
bool LogReader::add_memory(std::int32_t rank, const NamedNumber& timer) {
  if (timer.name == "max_mem_allocated") add(log_.series, "gpu_allocated", rank, gib * timer.value);
  if (timer.name == "max_cache_allocated")
    add(log_.series, "gpu_reserved", rank, gib * timer.value);
  return timer.name.ends_with("_allocated");
}

void LogReader::read_timers(LogLine& line) {
  const std::vector<NamedNumber> timers = line.timers();
  if (timers.empty()) return;
  const std::int32_t rank = line.rank();
  if (is_megatron(timers)) {
    wrote("Megatron");
    for (const NamedNumber& t : timers) {
      const std::string_view name = megatron_phase(t.name);
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

void LogReader::close(std::int32_t rank, const std::vector<NamedNumber>& timers) {
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
void LogReader::read_speed(LogLine& line) {
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

// The choice of the device (accelerator/real_accelerator.py); see_memory_usage
// (deepspeed/runtime/utils.py); report_memory (megatron/training/utils.py).
void LogReader::read_memory(LogLine& line) {
  if (line.has("Setting ds_accelerator to cpu")) log_.is_on_cpu = true;
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

}  // namespace tidegate
