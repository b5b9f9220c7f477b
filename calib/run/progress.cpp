#include "calib/run/progress.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace tidegate::calib {
namespace {

// "12 s", "1 min 35 s", "11 min": no more precise than anyone needs.
std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(std::max(seconds, 0.0)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 300) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{:.0f} min", static_cast<double>(whole) / 60);
}

}  // namespace

std::string progress_text(const ProgressNow& now) {
  const std::string so_far = duration_text(now.seconds) + " so far";
  if (now.pass == 0) {
    return now.all == 0 ? fmt::format("{}, {}", now.doing, so_far)
                        : fmt::format("{}, {}; {} blocks to measure", now.doing, so_far, now.all);
  }
  std::string text = fmt::format("pass {} of {}: {} of {} blocks, {}", now.pass, now.passes,
                                 now.done, now.all, so_far);
  if (now.left > 0) text += ", about " + duration_text(now.left) + " left";
  if (now.rejected > 0) text += fmt::format(", {} samples rejected", now.rejected);
  return text + ": " + now.doing;
}

std::string ProgressLog::line(const ProgressNow& now) {
  const bool is_due = !has_begun_ || now.pass != pass_ || now.seconds - said_ >= every_;
  if (!is_due) return "";
  has_begun_ = true;
  pass_ = now.pass;
  said_ = now.seconds;
  return progress_text(now) + "\n";
}

}  // namespace tidegate::calib
