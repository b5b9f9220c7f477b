#include "validate/engine/exchange.hpp"

#include <algorithm>
#include <cmath>

#include "models/base/error.hpp"

namespace tidegate {

std::vector<std::uint16_t> members_of(const Collective& c) {
  std::vector<std::uint16_t> gpus;
  for (std::uint16_t i = 0; i < c.gpus; ++i)
    gpus.push_back(static_cast<std::uint16_t>(c.first_gpu + i * c.stride));
  return gpus;
}

Exchange exchange_of(const Collective& c) {
  constexpr double grain = 16, number = 4;
  const double grains = std::ceil(c.bytes.value() / (grain * c.gpus));
  return {c.kind, c.gpus, static_cast<std::int64_t>(grains * grain / number)};
}

float trial_sent(std::int64_t member, std::int64_t i) {
  return 1.0F + static_cast<float>((i + 7 * member) % trial_period) / 64.0F;
}

float trial_received(const Exchange& e, std::int64_t member, std::int64_t i) {
  const auto sum = [&](std::int64_t at) {
    float all = 0;
    for (std::int64_t m = 0; m < e.members; ++m) all += trial_sent(m, at);
    return all;
  };
  switch (e.kind) {
    case CollectiveKind::all_reduce:
      return sum(i);
    case CollectiveKind::reduce_scatter:
      return sum(member * e.part + i);
    case CollectiveKind::all_gather:
      return trial_sent(i / e.part, i % e.part);
    case CollectiveKind::broadcast:
      return trial_sent(0, i);
    case CollectiveKind::all_to_all:
      return trial_sent(i / e.part, member * e.part + i % e.part);
  }
  ensure(false, "every collective has a result");
  return 0;
}

std::vector<std::int64_t> trial_windows(const Exchange& e) {
  std::vector<std::int64_t> begins;
  const std::int64_t last = std::max<std::int64_t>(0, e.received() - trial_window);
  for (std::int64_t at = 0; at < last; at += e.part) begins.push_back(at);
  begins.push_back(last);
  return begins;
}

}  // namespace tidegate
