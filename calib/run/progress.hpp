#pragma once

#include <string>

#include "calib/measure/protocol.hpp"

/// What a person is told while a run goes on.
namespace tidegate::calib {

/// "pass 1 of 3: 120 of 900 blocks, 1 min 35 s so far, about 11 min left, 12 samples rejected:
/// nvme.read…" Before the first block: "preparing nvme.read, 12 s so far; 900 blocks to measure".
std::string progress_text(const ProgressNow& now);

/// Which of the many states of a run become lines of a log: the first one, every one that begins a
/// pass, and the first after `every` seconds without a line (20: asked every ten seconds, no
/// silence is longer than thirty).
class ProgressLog {
 public:
  explicit ProgressLog(double every = 20) : every_(every) {}
  /// The line, with its end; empty when this state is none.
  std::string line(const ProgressNow& now);

 private:
  double every_;
  bool has_begun_ = false;
  std::int32_t pass_ = 0;
  double said_ = 0;
};

}  // namespace tidegate::calib
