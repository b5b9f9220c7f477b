#include "sim/offload/trace.hpp"

#include <algorithm>
#include <cmath>

#include "models/base/error.hpp"

namespace tidegate {

bool TensorTrace::Tensor::can_recompute() const {
  return recompute.value() >= 0 && std::isfinite(recompute.value());
}

std::size_t TensorTrace::operator_at(std::size_t point) const {
  return point < operators.size() ? point : points() - 1 - point;
}

void check(const TensorTrace& trace) {
  ensure(trace.transient.size() == trace.points(), "a trace has one transient per point");
  for (std::size_t i = 1; i < trace.operators.size(); ++i)
    ensure(trace.operators[i - 1].layer <= trace.operators[i].layer, "layers follow each other");
  for (const TensorTrace::Tensor& t : trace.tensors) {
    ensure(t.bytes > Bytes(), "a saved tensor has bytes");
    ensure(t.first <= t.last && t.last < trace.operators.size(),
           "a tensor is saved by operators of the trace");
  }
}

std::vector<Seconds> time_axis(const TensorTrace& trace) {
  std::vector<Seconds> starts(1);
  starts.reserve(trace.points() + 1);
  for (std::size_t p = 0; p < trace.points(); ++p) {
    const TensorTrace::Operator& op = trace.operators[trace.operator_at(p)];
    starts.push_back(starts.back() + (p < trace.operators.size() ? op.forward : op.backward));
  }
  return starts;
}

std::size_t point_at(const std::vector<Seconds>& axis, Seconds time) {
  const auto after = std::ranges::upper_bound(axis, time);
  const auto index = after == axis.begin() ? 0 : after - axis.begin() - 1;
  return std::min(static_cast<std::size_t>(index), axis.size() - 2);
}

}  // namespace tidegate
