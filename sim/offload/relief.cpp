#include "sim/offload/relief.hpp"

#include <algorithm>

namespace tidegate {
namespace {

// y at x of the line through the points (xs, ys), both ascending; ends beyond them.
template <class X, class Y>
Y at(const std::vector<X>& xs, const std::vector<Y>& ys, X x) {
  const auto after = std::ranges::upper_bound(xs, x);
  if (after == xs.begin()) return ys.front();
  if (after == xs.end()) return ys.back();
  const auto k = static_cast<std::size_t>(after - xs.begin());
  return ys[k - 1] + (ys[k] - ys[k - 1]) * ((x - xs[k - 1]) / (xs[k] - xs[k - 1]));
}

}  // namespace

Relief::Relief(const HiddenMoves& hidden, const std::vector<Bytes>& curve, Bytes line)
    : hidden_(&hidden), above_(1) {
  const std::vector<Seconds>& axis = hidden.axis();
  for (std::size_t p = 0; p < curve.size(); ++p)
    above_.push_back(above_.back() + (curve[p] > line ? axis[p + 1] - axis[p] : Seconds()));
  for (const Move::Where where : {Move::Where::host, Move::Where::storage}) {
    out_[static_cast<std::size_t>(where)] = room_up_to(hidden.traffic().out(where), axis);
    in_[static_cast<std::size_t>(where)] = room_up_to(hidden.traffic().in(where), axis);
  }
}

double Relief::of(const Move& move, Bytes bytes) const {
  const std::vector<Seconds>& axis = hidden_->axis();
  const std::vector<Bytes>& out = out_[static_cast<std::size_t>(move.where)];
  const std::vector<Bytes>& in = in_[static_cast<std::size_t>(move.where)];
  const Seconds start = axis[move.out_after + 1] + hidden_->traffic().latency(move.where);
  const Bytes written = at(axis, out, start) + bytes / 2;
  const Bytes unread = in[move.in_before] - bytes / 2;
  if (written > out.back() || unread < Bytes()) return 0;
  const Seconds gone = at(out, axis, written);
  const Seconds back = at(in, axis, unread);
  return bytes.value() * std::max(0., (at(axis, above_, back) - at(axis, above_, gone)).value());
}

}  // namespace tidegate
