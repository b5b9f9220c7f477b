#pragma once

#include <chrono>
#include <string>

#include "sim/search/tune.hpp"

/// What long searches show while they run, and how they are ended.
namespace tidegate {

constexpr int interrupted_code = 130;

/// From now on Ctrl-C ends a search in good order; a second one ends the program at once.
void watch_interrupts();
/// The same of SIGTERM, which launchers send to all processes on Ctrl-C, and kill them soon after.
void watch_termination();
bool was_interrupted();

/// "12 s", "3 min 5 s".
std::string time_text(double seconds);

/// A line on a terminal that is written over, with the time left at the present pace. Nothing is
/// written elsewhere.
class ProgressLine {
 public:
  void show(const std::string& doing, std::size_t done, std::size_t most, const std::string& more);
  void show(const TuneOptions::Progress& p);
  void wipe() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string doing_;
  Clock::time_point began_;
  std::size_t first_ = 0;
};

}  // namespace tidegate
