#include <chrono>

#include "calib/storage/rows.hpp"

namespace tidegate::calib {
namespace {

// How long the flush takes after so many bytes were written and not yet flushed. The writes
// themselves are not in the time.
Sample take_flush(Target& target, std::int64_t dirty) {
  using Clock = std::chrono::steady_clock;
  Sample sample;
  rig::flush(target.files()[0]);
  if (dirty > 0) {
    const StreamPlan plan{.direction = Direction::write, .most_bytes = dirty};
    sample.written = stream(target, plan).bytes;
  }
  const auto start = Clock::now();
  rig::flush(target.files()[0]);
  sample.elapsed = Seconds(std::chrono::duration<double>(Clock::now() - start).count());
  sample.value = sample.elapsed.value();
  return sample;
}

StorageRow after(const RowSetup& setup, double shares) {
  const std::int64_t dirty = shares > 0 ? bytes_of(setup, shares, mib) : 0;
  const auto take = [dirty, path = setup.path](std::span<Target> targets) {
    return take_flush(targets[path], dirty);
  };
  const auto at = static_cast<double>(dirty);
  return {make_row(setup, "flush", {{"dirty", at}}, Unit::seconds), shares, take};
}

}  // namespace

std::vector<StorageRow> flush_rows(const RowSetup& setup) {
  std::vector<StorageRow> rows = {after(setup, 0), after(setup, 1)};
  if (setup.effort != Effort::quick) rows.push_back(after(setup, 0.25));
  return rows;
}

}  // namespace tidegate::calib
