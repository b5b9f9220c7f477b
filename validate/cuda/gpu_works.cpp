#include "validate/cuda/gpu_works.hpp"

#include <algorithm>
#include <cmath>

namespace tidegate {
namespace {

constexpr std::int64_t grain = 256;  // cuBLASLt likes operands that begin at a multiple of it

std::int64_t aligned(std::int64_t bytes) { return (bytes + grain - 1) / grain * grain; }

std::int64_t size_of(DType type) { return static_cast<std::int64_t>(bytes_per_element(type)); }

// fp8 products write bf16.
std::int64_t size_of_result(DType type) { return std::max<std::int64_t>(size_of(type), 2); }

struct RoomOf {
  Room operator()(const Gemm& g) const {
    return {aligned(g.batch * g.m * g.k * size_of(g.dtype)) +
                aligned(g.batch * g.n * g.k * size_of(g.dtype)),
            aligned(g.batch * g.m * g.n * size_of_result(g.dtype))};
  }
  // Scores are written and read again; q, k and v are read, the sums written behind the scores.
  Room operator()(const Attention& a) const {
    const EagerAttention e = eager(a);
    const Room scores = (*this)(e.scores), sums = (*this)(e.sums);
    const std::int64_t values = aligned(e.sums.batch * e.sums.n * e.sums.k * size_of(a.dtype));
    return {scores.read + values, scores.written + sums.written};
  }
  Room operator()(const Elementwise& e) const {
    std::int64_t most = 0;
    for (const std::int64_t elements : triads_of(e)) most = std::max(most, elements);
    return {2 * aligned(4 * most), aligned(4 * most)};
  }
};

// The most heads at a time, at most `most`, of which all are a whole number of pieces; for
// backward, which is two and a half forwards, an even one if there is such a number.
std::int64_t heads_at_a_time(std::int64_t all, std::int64_t most, bool is_backward) {
  std::int64_t best = 1;
  bool is_best_whole = false;
  for (std::int64_t heads = 1; heads <= std::min(all, most); ++heads) {
    if (all % heads != 0) continue;
    const bool is_whole = !is_backward || all / heads % 2 == 0;
    if (is_whole || !is_best_whole) best = heads, is_best_whole = is_whole;
  }
  return best;
}

}  // namespace

Room Room::with(const Room& other) const {
  return {std::max(read, other.read), std::max(written, other.written)};
}

Room room_of(const Kernel& kernel) { return std::visit(RoomOf{}, kernel); }

EagerAttention eager(const Attention& a) {
  const std::int64_t all = a.batch * a.heads;
  const std::int64_t each = a.queries * a.keys * size_of_result(a.dtype);
  EagerAttention e;
  e.heads = heads_at_a_time(all, most_scores / std::max<std::int64_t>(each, 1), a.backward);
  e.scores = {a.queries, a.keys, a.head_dim, e.heads, a.dtype};
  e.sums = {a.queries, a.head_dim, a.keys, e.heads, a.dtype};
  Attention one = a;
  one.batch = 1, one.heads = one.kv_heads = e.heads, one.backward = false;
  const double runs = flops_of(Kernel(a)).value() / flops_of(Kernel(one)).value();
  e.runs = std::max<std::int64_t>(1, std::llround(runs));
  return e;
}

std::vector<std::int64_t> triads_of(const Elementwise& elementwise) {
  std::vector<std::int64_t> triads;
  const std::int32_t launches = std::max(elementwise.launches, 1);
  const double each = elementwise.bytes.value() / launches;
  for (std::int32_t i = 0; i < launches; ++i) {
    auto left = static_cast<std::int64_t>(std::ceil(each / triad_bytes));
    for (; left > 0; left -= most_triad) triads.push_back((std::min(left, most_triad) + 7) / 8 * 8);
  }
  return triads;
}

}  // namespace tidegate
