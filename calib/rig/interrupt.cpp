#include "calib/rig/interrupt.hpp"

#include <array>
#include <csignal>
#include <ctime>

#include <unistd.h>

namespace tidegate::rig {
namespace {

constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP};

// A signal handler can reach nothing but what is global.
volatile std::sig_atomic_t arrived = 0;
std::array<struct sigaction, signals.size()> before;

volatile std::sig_atomic_t arrived_at = 0;  // seconds of the monotonic clock

void on_signal(int number) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto seconds = static_cast<std::sig_atomic_t>(now.tv_sec);
  // timeout(1) and mpirun send theirs twice at once: to the process and to its group.
  if (arrived != 0 && seconds - arrived_at > 1) _exit(128 + number);
  if (arrived != 0) return;
  arrived_at = seconds;
  arrived = number;
}

}  // namespace

InterruptScope::InterruptScope() {
  arrived = 0;
  struct sigaction action{};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before[i]);
}

InterruptScope::~InterruptScope() {
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before[i], nullptr);
  arrived = 0;
}

bool is_interrupted() { return arrived != 0; }

void check_interrupt() {
  if (is_interrupted()) throw Interrupted("interrupted by a signal");
}

}  // namespace tidegate::rig
