#include <algorithm>

#include "calib/fit/statistics.hpp"
#include "calib/storage/storage_bench.hpp"

namespace tidegate::calib {
namespace {

// As many parts of the time as ten blocks each allow, sixty at most.
std::size_t parts_of(std::int64_t bytes) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(bytes / (10 * mib), 1, 60));
}

/// Drives that write fast into a cache of their own and slowly afterwards, or that throttle, show
/// it in bytes or in minutes, not in the half second of an ordinary sample.
class Sustained : public Bench {
 public:
  explicit Sustained(const Setup& setup) : bytes_(setup.sustained) {
    Setup own = setup;
    own.write_budget = setup.sustained;
    for (const StorageTarget& path : setup.storage) targets_.emplace_back(path, own, 1);
    is_spent_.resize(targets_.size(), false);
  }

  std::vector<Row> rows() const override {
    std::vector<Row> rows;
    for (const Target& target : targets_) {
      const StorageTarget& path = target.path();
      const rig::DeviceFacts device = rig::device_facts(path.facts.device);
      RowSetup setup;
      setup.name = path.name;
      setup.device = path.facts.device;
      setup.is_buffered = target.access() == rig::Access::buffered;
      setup.ceiling = device.link.value();
      setup.ceiling_from = device.link_text;
      rows.push_back(make_row(setup, "sustained_write", {{"bytes", bytes_.value()}}));
      rows.back().writes = bytes_;
    }
    return rows;
  }

  void prepare() override {
    for (const Target& target : targets_) rig::check_space(target.path().folder, bytes_);
  }

  Sample sample(std::size_t row) override {
    if (is_spent_.at(row)) throw BudgetSpent("a sustained write is made once");
    is_spent_[row] = true;
    Target& target = targets_.at(row);
    const rig::ScratchFile file = target.fresh_file();
    const StreamPlan plan{.direction = Direction::write,
                          .flushes = target.access() == rig::Access::buffered,
                          .other = &file,
                          .size = static_cast<std::int64_t>(bytes_.value()) / mib * mib};
    const StreamResult result = stream(target, plan);
    Sample sample = rate_sample(result, Direction::write);
    sample.series = result.series(parts_of(result.bytes));
    if (!sample.series.empty()) {
      const std::size_t last = std::max<std::size_t>(1, sample.series.size() / 4);
      sample.value = median(std::span(sample.series).last(last));
    }
    return sample;
  }

  void finish() override {
    for (Target& target : targets_) target.finish();
  }

 private:
  Bytes bytes_;
  std::vector<Target> targets_;
  std::vector<bool> is_spent_;
};

}  // namespace

std::string why_no_sustained(const Setup& setup) {
  if (setup.storage.empty()) return why_no_storage(setup);
  if (setup.sustained.value() >= mib) return "";
  return "not asked for: it writes as many bytes as it is given (--sustained BYTES)";
}

std::unique_ptr<Bench> make_sustained(const Setup& setup) {
  return std::make_unique<Sustained>(setup);
}

}  // namespace tidegate::calib
