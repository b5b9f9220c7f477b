#include <fstream>
#include <string>

#include "validate/log/reader.hpp"

namespace tidegate {

void LogReader::read(std::string_view text) {
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

TrainingLog LogReader::finish() {
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

bool TrainingLog::has_timings() const {
  for (const char* name : {"forward", "backward", "update", "iteration", "samples_per_second"}) {
    if (series.contains(name)) return true;
  }
  return false;
}

TrainingLog read_log(std::istream& text, const std::string& name) {
  LogReader reader(name);
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
