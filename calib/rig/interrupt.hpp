#pragma once

#include <stdexcept>

/// Ctrl-C (SIGINT), SIGTERM and SIGHUP as a flag that long work asks for. A second signal, a
/// second or two later, ends the process at once. Scratch files have no name, so that none is left
/// then either; those that clients of a shared file system read from each other have one
/// (".tidegate-…", NamedFile) and are.
namespace tidegate::rig {

class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Catches the three signals while it lives; the handlers of before come back afterwards.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

/// Whether one of them has arrived since the scope began; false where there is no scope.
bool is_interrupted();
/// Throws Interrupted when one has.
void check_interrupt();

}  // namespace tidegate::rig
