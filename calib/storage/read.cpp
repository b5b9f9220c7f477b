#include "calib/storage/rows.hpp"

namespace tidegate::calib {

// Sequential reads of files that were written in full.
std::vector<StorageRow> read_rows(const RowSetup& setup) {
  std::vector<StorageRow> rows;
  for (const Setting& setting : settings(setup)) {
    const StreamPlan plan{.direction = Direction::read,
                          .block = setting.block,
                          .depth = setting.depth,
                          .files = setting.files,
                          .most_time = setup.target};
    const auto take = [plan, path = setup.path](std::span<Target> targets) {
      return rate_sample(stream(targets[path], plan), Direction::read);
    };
    rows.push_back({make_row(setup, "read", coordinates(setting)), 0, take});
  }
  return rows;
}

}  // namespace tidegate::calib
