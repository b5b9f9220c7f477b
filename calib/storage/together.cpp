#include <algorithm>

#include "calib/storage/rows.hpp"

namespace tidegate::calib {
namespace {

// All paths at once, each by its own thread; the value is this path's rate.
StorageRow together(const RowSetup& setup, const Setting& setting, Direction direction) {
  const bool reads = direction == Direction::read;
  const std::int64_t bytes = bytes_of(setup, 1, setting.block);
  const auto take = [=, path = setup.path, time = setup.target,
                     buffered = setup.is_buffered](std::span<Target> targets) {
    StreamPlan plan{.direction = direction,
                    .block = setting.block,
                    .depth = setting.depth,
                    .most_time = time,
                    .flushes = !reads && buffered};
    std::vector<Target*> all;
    for (Target& target : targets) {
      all.push_back(&target);
      if (reads) continue;
      // As long as the fastest takes for its share, so that none runs alone at the end.
      plan.most_bytes = bytes;
      plan.most_time =
          std::min(plan.most_time, Bytes(static_cast<double>(bytes)) / target.write_rate());
    }
    const std::vector<StreamPlan> plans(all.size(), plan);
    const auto results = streams(all, plans);
    return rate_sample(results[path], direction);
  };
  auto at = coordinates(setting);
  const auto paths = static_cast<double>(setup.paths);
  at.emplace_back("paths", paths);
  return {make_row(setup, reads ? "together_read" : "together_write", at), reads ? 0 : paths, take};
}

}  // namespace

std::vector<StorageRow> together_rows(const RowSetup& setup) {
  if (setup.paths < 2) return {};
  const Setting setting{mib, std::min<std::size_t>(16, setup.most_depth), 1};
  return {together(setup, setting, Direction::read), together(setup, setting, Direction::write)};
}

}  // namespace tidegate::calib
