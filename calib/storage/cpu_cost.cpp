#include "calib/storage/rows.hpp"

namespace tidegate::calib {
namespace {

// CPU seconds of this process per byte moved, user and system together, helper threads of the
// kernel for our ring included; interrupts and other kernel workers are not charged to us.
StorageRow cost(const RowSetup& setup, const Setting& setting, Direction direction) {
  const bool reads = direction == Direction::read;
  const std::int64_t bytes = bytes_of(setup, 1, setting.block);
  const auto take = [=, path = setup.path, time = setup.target](std::span<Target> targets) {
    StreamPlan plan{
        .direction = direction, .block = setting.block, .depth = setting.depth, .most_time = time};
    if (!reads) plan.most_bytes = bytes;
    const StreamResult result = stream(targets[path], plan);
    Sample sample = rate_sample(result, direction);
    sample.value = result.cpu / static_cast<double>(result.bytes);
    sample.series.clear();
    return sample;
  };
  return {make_row(setup, reads ? "cpu_read" : "cpu_write", coordinates(setting), Unit::seconds),
          reads ? 0.0 : 1.0, take};
}

}  // namespace

std::vector<StorageRow> cpu_rows(const RowSetup& setup) {
  std::vector<StorageRow> rows;
  for (const Setting& setting : {Setting{128 * kib, 16, 1}, Setting{mib, 16, 1}}) {
    if (setting.depth > setup.most_depth) continue;
    rows.push_back(cost(setup, setting, Direction::read));
    if (setup.effort != Effort::quick) rows.push_back(cost(setup, setting, Direction::write));
  }
  return rows;
}

}  // namespace tidegate::calib
