#include "cli/calib_progress.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/core.h>

namespace tidegate {
namespace {

// A line that wraps could not be wiped.
std::string fitting_line(const std::string& text) {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return text.substr(0, is_known ? size.ws_col - 1U : 79U);
}

}  // namespace

CalibProgress::CalibProgress()
    : is_terminal_(isatty(STDERR_FILENO) != 0), repeater_([this] { repeat(); }) {}

CalibProgress::~CalibProgress() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  repeater_.join();
  if (is_terminal_ && has_begun_) fmt::print(stderr, "\r\033[K");
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
    fmt::print(stderr, "\r\033[K{}", fitting_line(calib::progress_text(now)));
  } else {
    fmt::print(stderr, "{}", log_.line(now));
  }
  std::fflush(stderr);
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
