#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// One line of an engine's log, searched for what engines write. Text before and behind it
/// (launchers' prefixes, progress bars, other processes) does not matter; a number that is there
/// and cannot be read is damage, with its column.
namespace tidegate {

struct NamedNumber {
  std::string name;
  double value = 0;
};
struct NamedText {
  std::string name, value;
};
struct Damage {
  int column = 0;  ///< counts from 1
  std::string key, text;
};

class LogLine {
 public:
  explicit LogLine(std::string_view text) : text_(text) {}

  bool has(std::string_view key) const { return text_.find(key) != std::string_view::npos; }
  /// The finite number >= 0 behind `key`, spaces or one quote between; nothing when the key is not
  /// there, or the number is damaged.
  std::optional<double> number_after(std::string_view key);
  /// "[Rank 3]" or "rank=3", else 0.
  std::int32_t rank() const;
  /// Of "time (ms) | forward: 27.41 | step: 72.82", as written, in order. Damaged fields are left
  /// out; "mem_allocated: 1.2 GB" of early versions keeps its number.
  std::vector<NamedNumber> timers();
  /// Of "forward-compute ....: (1.25, 1.50)": the name and the larger number.
  std::optional<NamedNumber> dotted_timer();
  /// Of "  train_batch_size ....... 8": how DeepSpeed and Megatron print their settings.
  std::optional<NamedText> setting() const;

  const std::vector<Damage>& damages() const { return damages_; }

 private:
  void damage(std::size_t at, std::string_view key, std::string text);
  std::optional<NamedNumber> timer(std::string_view field);

  std::string_view text_;
  std::vector<Damage> damages_;
};

}  // namespace tidegate
