#include <chrono>

#include "calib/rig/interrupt.hpp"
#include "calib/rig/io_queue.hpp"
#include "calib/storage/rows.hpp"

namespace tidegate::calib {
namespace {

// A file for each tensor: open, write, close, one after another; the value is files per second. The
// files have no names, so that what a directory's entry costs is not in it.
Sample take_small(Target& target, std::int64_t block, Seconds time, std::int64_t most_bytes) {
  using Clock = std::chrono::steady_clock;
  const auto queue = rig::make_io_queue({.depth = 1});
  const auto bytes = target.memory(Direction::write, static_cast<std::size_t>(block));
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Sample sample;
  double count = 0;
  do {
    rig::check_interrupt();
    target.charge(block);
    const rig::ScratchFile file = rig::ScratchFile::beside(target.files()[0]);
    rig::transfer(*queue, Direction::write, file.descriptor(), 0, bytes,
                  static_cast<std::size_t>(block));
    sample.written += block;
    ++count;
  } while (elapsed() < time.value() && sample.written + block <= most_bytes);
  sample.elapsed = Seconds(elapsed());
  sample.value = count / sample.elapsed.value();
  return sample;
}

}  // namespace

std::vector<StorageRow> small_rows(const RowSetup& setup) {
  std::vector<std::int64_t> blocks = {64 * kib};
  if (setup.effort != Effort::quick) blocks = {4 * kib, 64 * kib, mib};
  std::vector<StorageRow> rows;
  for (const std::int64_t block : blocks) {
    const std::int64_t bytes = bytes_of(setup, 0.25, block);
    const auto take = [=, path = setup.path, time = setup.target](std::span<Target> targets) {
      return take_small(targets[path], block, time, bytes);
    };
    rows.push_back(
        {make_row(setup, "small_files", {{"block", static_cast<double>(block)}}, Unit::per_second),
         0.25, take});
  }
  return rows;
}

}  // namespace tidegate::calib
