#include "sim/search/evaluators.hpp"

#include <mutex>

#include "sim/search/parallel.hpp"

namespace tidegate {

std::vector<Screening> Threads::screen(const std::vector<Sets>& list) {
  std::vector<Screening> screenings(list.size());
  parallel_for(
      list.size(), threads_, [&](std::size_t i) { screenings[i] = evaluator_.screen(list[i]); },
      [] { return false; });
  return screenings;
}

void Threads::simulate(const std::vector<Sets>& list, const Done& done,
                       const std::function<bool()>& is_stopped) {
  std::mutex guard;
  parallel_for(
      list.size(), threads_,
      [&](std::size_t i) {
        Trial trial = evaluator_.simulate(list[i]);
        const std::lock_guard hold(guard);
        done(i, std::move(trial));
      },
      is_stopped);
}

}  // namespace tidegate
