#include "sim/policy/schedule.hpp"

#include <algorithm>
#include <cstddef>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// The k-th forward (or backward) of a stage: groups of `stages` micro-batches go through all chunks
// before the next group starts; backward takes the chunks from the last.
Action nth(std::int64_t k, bool is_forward, std::int64_t stage, std::int64_t stages,
           std::int64_t chunks) {
  if (chunks == 1) {
    return {static_cast<std::uint16_t>(stage), 0, static_cast<std::int32_t>(k), is_forward};
  }
  const std::int64_t group = k / (stages * chunks), within = k % (stages * chunks);
  const std::int64_t chunk = within / stages;
  return {static_cast<std::uint16_t>(stage),
          static_cast<std::uint16_t>(is_forward ? chunk : chunks - 1 - chunk),
          static_cast<std::int32_t>(group * stages + within % stages), is_forward};
}

// What has been done, by piece and micro-batch.
class Done {
 public:
  Done(std::int64_t stages, std::int64_t chunks, std::int64_t micro_batches)
      : stages_(stages),
        pieces_(stages * chunks),
        forward_(static_cast<std::size_t>(pieces_ * micro_batches)),
        backward_(forward_.size()) {}

  bool may(const Action& a) const {
    const std::int64_t piece = a.piece(stages_);
    if (a.is_forward) return piece == 0 || forward_[at(piece - 1, a)];
    return forward_[at(piece, a)] && (piece + 1 == pieces_ || backward_[at(piece + 1, a)]);
  }
  void set(const Action& a) {
    (a.is_forward ? forward_ : backward_)[at(a.piece(stages_), a)] = true;
  }

 private:
  std::int64_t stages_, pieces_;
  std::vector<bool> forward_, backward_;

  std::size_t at(std::int64_t piece, const Action& a) const {
    return static_cast<std::size_t>(a.micro_batch * pieces_ + piece);
  }
};

}  // namespace

std::vector<Action> stage_schedule(std::int64_t stage, std::int64_t stages, std::int64_t chunks,
                                   std::int64_t micro_batches) {
  ensure(stages >= 1 && chunks >= 1 && micro_batches >= 1,
         "a pipeline has stages and micro-batches");
  ensure(chunks == 1 || (stages > 1 && micro_batches % stages == 0),
         "an interleaved pipeline takes micro-batches in groups of its stages");
  const std::int64_t all = micro_batches * chunks, behind = stages - 1 - stage;
  const std::int64_t fill = chunks == 1 ? behind : 2 * behind + (chunks - 1) * stages;
  const std::int64_t warm_up = std::min(fill, all);
  std::vector<Action> actions;
  for (std::int64_t k = 0; k < warm_up; ++k) actions.push_back(nth(k, true, stage, stages, chunks));
  for (std::int64_t k = 0; k < all; ++k) {
    if (warm_up + k < all) actions.push_back(nth(warm_up + k, true, stage, stages, chunks));
    actions.push_back(nth(k, false, stage, stages, chunks));
  }
  return actions;
}

std::vector<Action> pipeline_schedule(std::int64_t stages, std::int64_t chunks,
                                      std::int64_t micro_batches) {
  std::vector<std::vector<Action>> waiting;
  for (std::int64_t s = 0; s < stages; ++s) {
    waiting.push_back(stage_schedule(s, stages, chunks, micro_batches));
  }
  Done done(stages, chunks, micro_batches);
  std::vector<std::size_t> next(waiting.size(), 0);
  std::vector<Action> order;
  const auto all = static_cast<std::size_t>(2 * stages * chunks * micro_batches);
  while (order.size() < all) {
    const std::size_t before = order.size();
    for (std::size_t s = 0; s < waiting.size(); ++s) {
      if (next[s] == waiting[s].size() || !done.may(waiting[s][next[s]])) continue;
      order.push_back(waiting[s][next[s]++]);
      done.set(order.back());
    }
    ensure(order.size() > before, "a pipeline schedule makes progress");
  }
  return order;
}

}  // namespace tidegate
