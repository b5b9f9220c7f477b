#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "sim/search/evaluate.hpp"

namespace tidegate {

/// Who looks at candidates, many at a time: threads of this process, or those of all processes of a
/// run (sim/ranks). Answers are pure functions of the sets, so that they are the same whoever gives
/// them.
class Evaluators {
 public:
  using Sets = std::vector<Override>;
  using Done = std::function<void(std::size_t, Trial)>;
  virtual ~Evaluators() = default;

  virtual std::vector<Screening> screen(const std::vector<Sets>& list) = 0;
  /// Calls done(i, trial) as soon as list[i] is simulated, one call at a time. When `is_stopped`
  /// says yes, what has begun is finished and nothing else begun. Of what fails, the first by i is
  /// thrown.
  virtual void simulate(const std::vector<Sets>& list, const Done& done,
                        const std::function<bool()>& is_stopped) = 0;
};

/// Threads of this process.
class Threads final : public Evaluators {
 public:
  /// `evaluator` must outlive this.
  Threads(const Evaluator& evaluator, std::size_t threads)
      : evaluator_(evaluator), threads_(threads) {}

  std::vector<Screening> screen(const std::vector<Sets>& list) override;
  void simulate(const std::vector<Sets>& list, const Done& done,
                const std::function<bool()>& is_stopped) override;

 private:
  const Evaluator& evaluator_;
  std::size_t threads_;
};

}  // namespace tidegate
