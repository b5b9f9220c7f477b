#include <algorithm>

#include "calib/storage/rows.hpp"

namespace tidegate::calib {

namespace {

StorageRow read_row(const RowSetup& setup, const Setting& setting, const char* quantity,
                    rig::HostBuffer::Pages pages) {
  const StreamPlan plan{.direction = Direction::read,
                        .block = setting.block,
                        .depth = setting.depth,
                        .files = setting.files,
                        .most_time = setup.target,
                        .pages = pages};
  const auto take = [plan, path = setup.path](std::span<Target> targets) {
    return rate_sample(stream(targets[path], plan), Direction::read);
  };
  return {make_row(setup, quantity, coordinates(setting)), 0, take};
}

}  // namespace

// Sequential reads of files that were written in full.
std::vector<StorageRow> read_rows(const RowSetup& setup) {
  using Pages = rig::HostBuffer::Pages;
  std::vector<StorageRow> rows;
  for (const Setting& setting : settings(setup)) {
    rows.push_back(read_row(setup, setting, "read", Pages::huge));
  }
  const Setting usual{mib, std::min<std::size_t>(16, setup.most_depth), 1};
  rows.push_back(read_row(setup, usual, "read_small_pages", Pages::usual));
  return rows;
}

}  // namespace tidegate::calib
