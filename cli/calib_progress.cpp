#include "cli/calib_progress.hpp"

#include <algorithm>
#include <string>

#include <unistd.h>

#include "cli/say.hpp"

namespace tidegate {

CalibProgress::CalibProgress()
    : is_terminal_(isatty(STDERR_FILENO) != 0), repeater_([this] { repeat(); }) {}

CalibProgress::~CalibProgress() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  repeater_.join();
  if (has_begun_) say_line("");
}

void CalibProgress::operator()(const calib::ProgressNow& now) {
  const std::lock_guard lock(mutex_);
  last_ = now;
  told_ = std::chrono::steady_clock::now();
  has_begun_ = true;
  show(now);
}

void CalibProgress::show(const calib::ProgressNow& now) {
  if (is_terminal_) {
    say_line(calib::progress_text(now));
  } else {
    say(log_.line(now));
  }
}

// Asleep but for an instant every ten seconds: a gate of 0.05 cores does not see it.
void CalibProgress::repeat() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::seconds(10), [this] { return is_over_; })) {
    if (!has_begun_) continue;
    const auto silent = std::chrono::steady_clock::now() - told_;
    calib::ProgressNow now = last_;
    const double seconds = std::chrono::duration<double>(silent).count();
    now.seconds += seconds;
    now.left = std::max(now.left - seconds, 0.0);
    show(now);
  }
}

}  // namespace tidegate
