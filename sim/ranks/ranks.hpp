#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/ranks/link.hpp"
#include "sim/search/evaluators.hpp"
#include "sim/search/wire.hpp"

/// Candidates evaluated by all processes of a run. Rank 0 searches, prints and writes; it hands out
/// candidates to whoever is free, its own threads among them. The others answer questions until
/// they are told to stop. What comes back is what one process would have found.
namespace tidegate {

/// Rank 0: the threads of all ranks. Every rank has read the same files: throws the InputError of a
/// rank that could not, and one where a rank has read something else.
class Ranks final : public Evaluators {
 public:
  /// `evaluator` and `link` must outlive this.
  Ranks(Link& link, const Evaluator& evaluator, std::size_t threads);

  std::vector<Screening> screen(const std::vector<Sets>& list) override;
  void simulate(const std::vector<Sets>& list, const Done& done,
                const std::function<bool()>& is_stopped) override;

 private:
  struct Task;  // one call of screen or simulate
  struct Helper {
    std::size_t threads = 0;
    std::size_t asked = 0;  ///< without an answer yet
  };

  void greet();
  void run(Task& task);
  void hand_out(Task& task);
  void take_answers(Task& task);
  void work_here(Task& task) const;

  Link& link_;
  const Evaluator& evaluator_;
  std::size_t threads_;
  std::vector<Helper> helpers_;  // by rank; that of rank 0 is not used
  std::uint32_t batch_ = 0;
};

/// Evaluates a candidate; what it throws is in the answer.
Answer answer_to(const Evaluator& evaluator, Question::Kind kind, const Question::Item& item,
                 std::uint32_t batch);
/// In place of a question: there are no more.
constexpr const char* stop_word = "stop";

/// Tells the other ranks to stop, however rank 0 ends.
class StopOthers {
 public:
  explicit StopOthers(Link& link) : link_(link) {}
  ~StopOthers();
  StopOthers(const StopOthers&) = delete;
  StopOthers& operator=(const StopOthers&) = delete;

 private:
  Link& link_;
};

/// Another rank: answers with `threads` threads until rank 0 says stop. `make` reads the files;
/// what it throws goes to rank 0.
void serve(Link& link, std::size_t threads,
           const std::function<std::unique_ptr<Evaluator>()>& make);

}  // namespace tidegate
