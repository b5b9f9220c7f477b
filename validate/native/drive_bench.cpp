#include "validate/native/drive_bench.hpp"

#include <algorithm>
#include <vector>

#include "calib/node/estimate.hpp"
#include "calib/storage/rows.hpp"

namespace tidegate {
namespace {

using calib::StorageRow;

// A block is one sample, as long as what a case moves at a time: bytes over time holds the stalls
// that a median of short samples leaves out.
constexpr Seconds sample_time(1.0);
constexpr std::int64_t share = 2048 * calib::mib;  // that it writes at most

bool is_needed(const calib::Row& row, const std::string& path) {
  const double block = calib::coordinate(row, "block"), depth = calib::coordinate(row, "depth");
  if (row.quantity == path + ".latency_read") return block == 4096;
  if (row.quantity == path + ".mixed_read" || row.quantity == path + ".mixed_write") {
    return calib::coordinate(row, "write_cap") == 1;
  }
  const bool is_plain = row.quantity == path + ".read" || row.quantity == path + ".write";
  return is_plain && block == calib::mib && depth == 16;
}

class DriveBench : public calib::Bench {
 public:
  explicit DriveBench(const calib::Setup& setup) {
    const calib::StorageTarget& storage = setup.storage.at(0);
    targets_.emplace_back(storage, setup, 1);
    calib::RowSetup rows{.effort = calib::Effort::quick,
                         .name = storage.name,
                         .device = storage.facts.device,
                         .ceiling_from = {},
                         .target = sample_time,
                         .share = share};
    rows.is_buffered = targets_[0].access() == rig::Access::buffered;
    rows.file_size = targets_[0].file_size();
    for (const calib::Part part :
         {calib::read_rows, calib::write_rows, calib::mixed_rows, calib::latency_rows}) {
      for (StorageRow& row : part(rows)) {
        if (!is_needed(row.row, storage.name)) continue;
        row.row.writes = Bytes(row.shares * static_cast<double>(share));
        rows_.push_back(std::move(row));
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const StorageRow& row : rows_) rows.push_back(row.row);
    return rows;
  }
  void prepare() override { targets_[0].prepare(); }
  calib::Sample sample(std::size_t row) override { return rows_.at(row).take(targets_); }
  void finish() override { targets_[0].finish(); }

 private:
  std::vector<calib::Target> targets_;
  std::vector<StorageRow> rows_;
};

}  // namespace

std::unique_ptr<calib::Bench> make_drive_bench(const calib::Setup& setup) {
  return std::make_unique<DriveBench>(setup);
}

}  // namespace tidegate
