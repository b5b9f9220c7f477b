#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calib/storage/rows.hpp"

/// Every storage row of every path, over one set of files per path.
namespace tidegate::calib {

class StorageBench : public Bench {
 public:
  /// Throws InputError when the write budget is too small for the rows of the effort.
  explicit StorageBench(const Setup& setup);
  std::vector<Row> rows() const override;
  void prepare() override;
  /// Throws BudgetSpent when the row has written its part of the budget.
  Sample sample(std::size_t row) override;
  void finish() override;

  std::span<Target> targets() { return targets_; }

 private:
  std::vector<Target> targets_;
  std::vector<StorageRow> rows_;
  std::vector<std::int64_t> spent_;
};

/// Samples of a write row that the budget is divided for: three passes of six and a warm-up.
constexpr std::int64_t samples_per_row = 21;

std::string why_no_storage(const Setup& setup);
std::unique_ptr<Bench> make_storage(const Setup& setup);

/// A probe per path, "canary.<path>": reads of 1 MiB, 16 under way, from a file of 64 MiB that is
/// written beside the budget (128 MiB at most). What it shows is the drift of the machine.
std::vector<std::unique_ptr<Bench>> storage_canaries(const Setup& setup);

/// The curve of a long write, of `setup.sustained` bytes to each path, once: a row per path whose
/// value is the rate of the last quarter and whose series is the rate over up to sixty equal parts
/// of the time.
std::string why_no_sustained(const Setup& setup);
std::unique_ptr<Bench> make_sustained(const Setup& setup);

}  // namespace tidegate::calib
