#include <algorithm>
#include <queue>

#include "sim/offload/ahead.hpp"
#include "sim/offload/planners.hpp"
#include "sim/offload/relief.hpp"

namespace tidegate {
namespace {

// An inactive interval with what it would relieve. Larger relief on storage first, then on host,
// then larger bytes * time, then the smaller index.
struct Candidate {
  double storage = 0, host = 0, bytes_time = 0;
  std::size_t tensor = 0;

  bool operator<(const Candidate& other) const {
    if (storage != other.storage) return storage < other.storage;
    if (host != other.host) return host < other.host;
    if (bytes_time != other.bytes_time) return bytes_time < other.bytes_time;
    return tensor > other.tensor;
  }
  bool relieves() const { return storage > 0 || host > 0; }
};

class G10 {
 public:
  G10(const TensorTrace& trace, const Rates& rates, const G10Options& options)
      : trace_(trace),
        rates_(rates),
        options_(options),
        hidden_(trace, rates),
        line_(rates.gpu_capacity * options.line),
        moves_(keep_all(trace)) {}

  // A candidate's reliefs only fall as others are taken: the curve sinks and bandwidth gets
  // scarcer. So one that still leads after being measured anew is the best of all.
  void choose() {
    Relief relief(hidden_, memory_curve(trace_, moves_), line_);
    std::priority_queue<Candidate> queue;
    const auto push = [&](const Candidate& c) {
      if (c.relieves()) queue.push(c);
    };
    for (const Move& move : moves_)
      if (trace_.tensors[move.tensor].may_move) push(candidate(relief, move.tensor));
    while (!queue.empty() && relief.is_above()) {
      const std::size_t i = queue.top().tensor;
      queue.pop();
      const Candidate now = candidate(relief, i);
      if (!queue.empty() && now < queue.top()) {
        push(now);
      } else if (now.relieves() && place(i)) {
        relief = Relief(hidden_, memory_curve(trace_, moves_), line_);
      }
    }
  }

  MovePlan plan() && {
    fetch_where_room(trace_, moves_, line_, 0);
    const Forecast expected = forecast(trace_, rates_, moves_, {});
    return {std::move(moves_), expected};
  }

 private:
  Candidate candidate(const Relief& relief, std::size_t i) const {
    const Bytes bytes = trace_.tensors[i].bytes;
    Move move = moves_[i];
    offload(trace_, move, Move::Where::storage);
    Candidate c{.storage = relief.of(move, bytes),
                .bytes_time = bytes.value() * hidden_.interval(move).value(),
                .tensor = i};
    if (c.storage > 0 || !has_room(bytes)) return c;
    offload(trace_, move, Move::Where::host);
    c.host = relief.of(move, bytes);
    return c;
  }

  bool place(std::size_t i) {
    const Bytes bytes = trace_.tensors[i].bytes;
    Move move = moves_[i];
    offload(trace_, move, Move::Where::storage);
    bool is_for_host = !is_safe(move, bytes);
    if (!is_for_host && options_.relief == G10Options::Relief::crowded)
      is_for_host = has_room(bytes) && is_crowded(move, bytes);
    bool is_booked = !is_for_host && hidden_.book(move);
    if (!is_for_host) is_for_host = !is_booked && options_.relief == G10Options::Relief::unfit;
    if (is_for_host && has_room(bytes)) {
      offload(trace_, move, Move::Where::host);
      is_booked = is_safe(move, bytes) && hidden_.book(move);
      if (is_booked) host_used_ += bytes;
    }
    if (is_booked) moves_[i] = move;
    return is_booked;
  }

  bool has_room(Bytes bytes) const { return host_used_ + bytes <= rates_.host_capacity; }

  bool is_safe(const Move& move, Bytes bytes) const {
    const Seconds in = hidden_.in_alone(move.where, bytes);
    return hidden_.interval(move) >
           hidden_.out_alone(move.where, bytes) + in * (1 + options_.margin);
  }

  // The first byte cannot leave before the whole transfer would be over on idle drives.
  bool is_crowded(const Move& move, Bytes bytes) const {
    const Seconds undisturbed = hidden_.out_alone(move.where, bytes);
    return hidden_.early_out(move, bytes).begin() >=
           hidden_.axis()[move.out_after + 1] + undisturbed;
  }

  const TensorTrace& trace_;
  const Rates& rates_;
  const G10Options& options_;
  HiddenMoves hidden_;
  Bytes line_, host_used_;
  std::vector<Move> moves_;
};

}  // namespace

MovePlan plan_g10(const TensorTrace& trace, const Rates& rates, const G10Options& options) {
  check(trace);
  G10 g10(trace, rates, options);
  g10.choose();
  return std::move(g10).plan();
}

}  // namespace tidegate
