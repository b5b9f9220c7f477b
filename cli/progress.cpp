#include "cli/progress.hpp"

#include <atomic>
#include <csignal>

#include <fmt/core.h>

#include "cli/say.hpp"

namespace tidegate {
namespace {

// The one thing that a signal handler may write.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

void watch_interrupts() { std::signal(SIGINT, on_interrupt); }
void watch_termination() { std::signal(SIGTERM, on_interrupt); }
bool was_interrupted() { return interrupted.load(); }

std::string time_text(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

void ProgressLine::show(const std::string& doing, std::size_t done, std::size_t most,
                        const std::string& more) {
  if (isatty(STDERR_FILENO) == 0) return;
  if (doing != doing_) doing_ = doing, began_ = Clock::now(), first_ = done;
  const double took = std::chrono::duration<double>(Clock::now() - began_).count();
  std::string text = fmt::format("{}: {} of at most {}{}", doing, done, most, more);
  if (done > first_ && most > done) {
    const double left =
        took * static_cast<double>(most - done) / static_cast<double>(done - first_);
    text += ", at most " + time_text(left) + " left";
  }
  say_line(text);
}

void ProgressLine::show(const TuneOptions::Progress& p) {
  show(p.doing, p.done, p.most, p.best > Seconds(0) ? ", best " + to_text(p.best) : "");
}

void ProgressLine::wipe() const { say_line(""); }

}  // namespace tidegate
