#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/log/line.hpp"
#include "validate/log/log.hpp"

/// The state between the lines of a log.
namespace tidegate {

/// A name as an engine writes it, and as a TrainingLog has it.
struct NamePair {
  std::string_view written, name;
};
template <std::size_t N>
std::string_view name_in(const std::array<NamePair, N>& names, std::string_view written) {
  const auto at = std::ranges::find(names, written, &NamePair::written);
  return at == names.end() ? std::string_view{} : at->name;
}

/// The phase that a timer of Megatron is, or an empty text.
std::string_view megatron_phase(std::string_view timer);

/// Takes lines in order; read_log gives it those of a file.
class LogReader {
 public:
  explicit LogReader(const std::string& name) { log_.file = name; }

  void read(std::string_view text);
  void cut() { log_.is_cut = true; }

  TrainingLog finish();

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

}  // namespace tidegate
