#include <chrono>

#include "calib/rig/interrupt.hpp"
#include "calib/rig/io_queue.hpp"
#include "calib/storage/rows.hpp"

namespace tidegate::calib {
namespace {

// Below the usual limit of 1024 open files.
constexpr std::size_t most_files = 256;

// A file for each tensor: made and written, one after another; the value is files per second. They
// have no names and are deleted after the time was taken, so that neither the entry of a directory
// nor the freeing of blocks is in it.
Sample take_small(Target& target, std::int64_t block, Seconds time, std::int64_t most_bytes) {
  using Clock = std::chrono::steady_clock;
  const auto queue = rig::make_io_queue({.depth = 1});
  const auto bytes = target.memory(Direction::write, static_cast<std::size_t>(block));
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::vector<rig::ScratchFile> files;
  Sample sample;
  do {
    rig::check_interrupt();
    target.charge(block);
    files.push_back(rig::ScratchFile::beside(target.files()[0]));
    rig::transfer(*queue, Direction::write, files.back().descriptor(), 0, bytes,
                  static_cast<std::size_t>(block));
    sample.written += block;
  } while (elapsed() < time.value() && sample.written + block <= most_bytes &&
           files.size() < most_files);
  sample.elapsed = Seconds(elapsed());
  sample.value = static_cast<double>(files.size()) / sample.elapsed.value();
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
