#include <algorithm>
#include <array>
#include <limits>

#include "calib/storage/rows.hpp"

namespace tidegate::calib {
namespace {

// Two streams that hinder each other need longer than one to show it.
constexpr double shares = 4;

// As long as the writes last at their pace, or as a sample is meant to take.
Seconds time_of(double cap, std::int64_t bytes, BytesPerSecond alone, Seconds target) {
  if (cap <= 0) return target;
  return std::min(target, Bytes(static_cast<double>(bytes)) / (cap * alone));
}

// Two independent streams for the same time: writes paced to a part of the rate that overwriting
// has alone, reads as fast as they go. Sample for the one or the other.
Sample take_mixed(Target& target, const StreamPlan& plan, double cap, Direction wanted) {
  std::array<StreamPlan, 2> plans = {plan, plan};
  const BytesPerSecond alone = target.write_rate();
  for (StreamPlan& one : plans) {
    one.most_time = time_of(cap, plan.most_bytes, alone, plan.most_time);
    one.forgets_cache = false;  // it would wait for the writes
  }
  plans[0].most_bytes = std::numeric_limits<std::int64_t>::max();
  plans[1].direction = Direction::write;
  plans[1].rate = cap * alone;
  std::array<Target*, 2> both = {&target, &target};
  const std::size_t count = cap > 0 ? 2 : 1;
  target.forget_cache();
  const auto results = streams(std::span(both).first(count), std::span(plans).first(count));
  Sample sample = rate_sample(results[wanted == Direction::read ? 0 : 1], wanted);
  sample.read = results[0].bytes;
  sample.written = count > 1 ? results[1].bytes : 0;
  sample.is_verified = results[0].wrong_blocks == 0;
  return sample;
}

StorageRow mixed(const RowSetup& setup, const Setting& setting, double cap, Direction wanted) {
  auto at = coordinates(setting);
  at.emplace_back("write_cap", cap);
  const char* quantity = wanted == Direction::read ? "mixed_read" : "mixed_write";
  const StreamPlan plan{.block = setting.block,
                        .depth = setting.depth,
                        .most_time = setup.target,
                        .most_bytes = bytes_of(setup, shares, setting.block)};
  const auto take = [=, path = setup.path](std::span<Target> targets) {
    return take_mixed(targets[path], plan, cap, wanted);
  };
  return {make_row(setup, quantity, at), cap > 0 ? shares : 0, take};
}

}  // namespace

std::vector<StorageRow> mixed_rows(const RowSetup& setup) {
  std::vector<Setting> streams = {{mib, 16, 1}};
  if (setup.effort == Effort::full) streams = {{mib, 4, 1}, {mib, 16, 1}, {4 * mib, 4, 1}};
  std::vector<double> caps = {0, 0.25, 0.5, 0.75, 1};
  if (setup.effort == Effort::quick) caps = {0, 0.5, 1};
  std::vector<StorageRow> rows;
  for (const Setting& setting : streams) {
    if (2 * setting.depth > setup.most_depth) continue;
    for (const double cap : caps) {
      rows.push_back(mixed(setup, setting, cap, Direction::read));
      if (cap > 0) rows.push_back(mixed(setup, setting, cap, Direction::write));
    }
  }
  return rows;
}

}  // namespace tidegate::calib
