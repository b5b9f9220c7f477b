#include "validate/engine/pacer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr double kernel_part_s = 2e-3;    // of a work that moves no bytes
constexpr double shortest_part_s = 3e-4;  // threads are not woken more often than that
constexpr std::chrono::milliseconds most_credit{20};

Clock::duration duration_of(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
}

// A second of kernels weighs as many bytes as GPU memory moves in it; bytes weigh one.
bool moves_bytes(const Demand& demand) { return demand.weight == 1; }

std::int64_t parts_of(const Demand& demand, Bytes part) {
  const double alone = demand.alone.value();
  const double by_size = moves_bytes(demand) ? demand.amount / part.value() : alone / kernel_part_s;
  return std::max<std::int64_t>(1, std::llround(std::min(by_size, alone / shortest_part_s)));
}

}  // namespace

struct Pacer::Device {
  explicit Device(const Resource& resource) : mixed_cost(resource.mixed_cost) {}

  const std::array<double, 2> mixed_cost;
  std::mutex mutex;
  Clock::time_point free_at;
  std::array<int, 2> users{};  // works under way, by side

  void enter(std::uint8_t side, int change) {
    const std::lock_guard lock(mutex);
    users.at(side) += change;
  }
  Clock::time_point serve(std::uint8_t side, double service, Clock::time_point asked) {
    const std::lock_guard lock(mutex);
    const bool is_mixed = users.at(1 - side) > 0;
    free_at =
        std::max(free_at, asked) + duration_of(is_mixed ? service * mixed_cost.at(side) : service);
    return free_at;
  }
};

Pacer::Pacer(std::span<const Resource> resources, std::vector<Demand> demands, Bytes part)
    : demands_(std::move(demands)), part_(part) {
  for (const Resource& resource : resources) {
    if (resource.burst > Seconds(0)) {
      throw InputError(
          fmt::format("{} has a cache that fills, which a paced rig cannot play; leave out cache",
                      resource.name));
    }
    devices_.push_back(std::make_unique<Device>(resource));
  }
}

Pacer::~Pacer() = default;

Pacer::Pass::Pass(Pacer& pacer, std::size_t work, Clock::time_point start)
    : pacer_(pacer),
      demand_(pacer.demands_.at(work)),
      parts_(parts_of(demand_, pacer.part_)),
      due_(start + duration_of(demand_.latency.value())) {
  for (const Share& s : demand_.used()) pacer_.devices_[index(s.resource)]->enter(s.side, 1);
}

Pacer::Pass::~Pass() {
  for (const Share& s : demand_.used()) pacer_.devices_[index(s.resource)]->enter(s.side, -1);
}

Clock::time_point Pacer::Pass::next(Clock::time_point now) {
  const Clock::time_point asked = std::max(due_, now - most_credit);
  lost_ += asked - due_;
  const double alone = demand_.alone.value() / static_cast<double>(parts_);
  due_ = asked + duration_of(alone);
  for (const Share& s : demand_.used()) {
    Device& device = *pacer_.devices_[index(s.resource)];
    due_ = std::max(due_, device.serve(s.side, alone * s.fraction, asked));
  }
  return due_;
}

}  // namespace tidegate
