#include "calib/fit/statistics.hpp"
#include "calib/storage/rows.hpp"

namespace tidegate::calib {
namespace {

// One block at a time, at random places: the value is the median, the series has every latency in
// order, for quantiles.
StorageRow latency(const RowSetup& setup, std::int64_t block, Direction direction) {
  const bool reads = direction == Direction::read;
  const std::int64_t bytes = bytes_of(setup, 0.5, block);
  const auto take = [=, path = setup.path, time = setup.target](std::span<Target> targets) {
    StreamPlan plan{.direction = direction,
                    .block = block,
                    .depth = 1,
                    .order = Order::random,
                    .most_time = time};
    if (!reads) plan.most_bytes = bytes;
    const StreamResult result = stream(targets[path], plan);
    Sample sample = rate_sample(result, direction);
    sample.value = median(result.latencies);
    sample.series = result.latencies;
    return sample;
  };
  const char* quantity = reads ? "latency_read" : "latency_write";
  return {make_row(setup, quantity, {{"block", static_cast<double>(block)}}, Unit::seconds),
          reads ? 0 : 0.5, take};
}

}  // namespace

std::vector<StorageRow> latency_rows(const RowSetup& setup) {
  std::vector<StorageRow> rows;
  for (const std::int64_t block : {4 * kib, 128 * kib, mib}) {
    rows.push_back(latency(setup, block, Direction::read));
    if (setup.effort != Effort::quick) rows.push_back(latency(setup, block, Direction::write));
  }
  return rows;
}

}  // namespace tidegate::calib
