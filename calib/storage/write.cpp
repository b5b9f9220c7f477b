#include "calib/storage/rows.hpp"

namespace tidegate::calib {
namespace {

StreamPlan plan_of(const RowSetup& setup, const Setting& setting) {
  // Through the page cache a write is over when the flush is.
  return {.direction = Direction::write,
          .block = setting.block,
          .depth = setting.depth,
          .files = setting.files,
          .most_time = setup.target,
          .most_bytes = bytes_of(setup, 1, setting.block),
          .flushes = setup.is_buffered};
}

// Sequential writes over what was written before.
StorageRow overwrite(const RowSetup& setup, const Setting& setting) {
  const auto take = [plan = plan_of(setup, setting), path = setup.path](std::span<Target> targets) {
    return rate_sample(stream(targets[path], plan), Direction::write);
  };
  return {make_row(setup, "write", coordinates(setting)), 1, take};
}

// Sequential writes to a new file, block after block at its end: space is found meanwhile.
StorageRow extend(const RowSetup& setup, const Setting& setting) {
  const auto take = [plan = plan_of(setup, setting), path = setup.path](std::span<Target> targets) {
    Target& target = targets[path];
    const rig::ScratchFile file = target.fresh_file();
    StreamPlan now = plan;
    now.other = &file;
    now.size = now.most_bytes;
    return rate_sample(stream(target, now), Direction::write);
  };
  return {make_row(setup, "write_extend", coordinates(setting)), 1, take};
}

}  // namespace

std::vector<StorageRow> write_rows(const RowSetup& setup) {
  std::vector<StorageRow> rows;
  for (const Setting& setting : write_settings(setup)) rows.push_back(overwrite(setup, setting));
  std::vector<Setting> fresh = {{mib, 16, 1}};
  if (setup.effort != Effort::quick) fresh = {{mib, 1, 1}, {mib, 16, 1}, {4 * mib, 4, 1}};
  for (const Setting& setting : fresh) {
    if (setting.depth <= setup.most_depth) rows.push_back(extend(setup, setting));
  }
  return rows;
}

}  // namespace tidegate::calib
