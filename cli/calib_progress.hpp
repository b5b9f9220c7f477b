#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "calib/run/progress.hpp"

namespace tidegate {

/// A run of calib as it goes on, to stderr: on a terminal one line that changes, else a log with a
/// line at least every thirty seconds, also while one piece of work takes longer than that.
class CalibProgress {
 public:
  CalibProgress();
  ~CalibProgress();
  CalibProgress(const CalibProgress&) = delete;
  CalibProgress& operator=(const CalibProgress&) = delete;
  void operator()(const calib::ProgressNow& now);

 private:
  void show(const calib::ProgressNow& now);
  void repeat();

  const bool is_terminal_;
  std::mutex mutex_;
  std::condition_variable changed_;
  calib::ProgressNow last_;
  std::chrono::steady_clock::time_point told_;
  calib::ProgressLog log_;
  bool has_begun_ = false, is_over_ = false;
  std::thread repeater_;
};

}  // namespace tidegate
