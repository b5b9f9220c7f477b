#include "calib/storage/storage_bench.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

constexpr std::array<Part, 8> parts = {read_rows,  write_rows, mixed_rows,    latency_rows,
                                       flush_rows, cpu_rows,   together_rows, small_rows};

constexpr std::size_t files_of(Effort effort) { return effort == Effort::full ? 4 : 1; }

Seconds sample_time(Effort effort) {
  return Seconds(effort == Effort::quick ? 0.2 : effort == Effort::standard ? 0.5 : 1.0);
}

RowSetup row_setup(const Setup& setup, std::size_t path, const Target& target) {
  const StorageTarget& storage = setup.storage[path];
  const rig::DeviceFacts device = rig::device_facts(storage.facts.device);
  RowSetup rows;
  rows.effort = setup.effort;
  rows.path = path;
  rows.paths = setup.storage.size();
  rows.name = storage.name;
  rows.device = storage.facts.device;
  rows.is_buffered = target.access() == rig::Access::buffered;
  rows.file_size = target.file_size();
  rows.files = files_of(setup.effort);
  if (device.requests > 0) {
    rows.most_depth = std::min<std::size_t>(64, static_cast<std::size_t>(device.requests));
  }
  rows.ceiling = device.link.value();
  rows.ceiling_from = device.link_text;
  rows.target = sample_time(setup.effort);
  return rows;
}

std::vector<StorageRow> rows_of(const RowSetup& setup) {
  std::vector<StorageRow> rows;
  for (const Part part : parts) {
    for (StorageRow& row : part(setup)) rows.push_back(std::move(row));
  }
  for (StorageRow& row : rows) {
    row.row.writes = Bytes(row.shares * static_cast<double>(setup.share));
  }
  return rows;
}

// What is left of the budget after the files are written, but for a tenth that checks may use,
// divided among the samples of the rows that write.
std::int64_t share_of(const Setup& setup, const RowSetup& path) {
  double shares = 0;
  for (const StorageRow& row : rows_of(path)) shares += row.shares;
  const auto samples = static_cast<double>(samples_per_row);
  const double left = 0.9 * setup.write_budget.value() - 1.25 * setup.file_size.value();
  const double share = std::min(left / (shares * samples), 512.0 * mib);
  constexpr double least = 2.0 * mib;
  if (share >= least) return static_cast<std::int64_t>(share) / mib * mib;
  const double needed = (1.25 * setup.file_size.value() + shares * samples * least) / 0.9;
  throw InputError(fmt::format(
      "{}: a write budget of {} is too small for files of {} and the rows of this effort; give at "
      "least {}",
      path.name, to_text(setup.write_budget), to_text(setup.file_size), to_text(Bytes(needed))));
}

}  // namespace

StorageBench::StorageBench(const Setup& setup) {
  for (const StorageTarget& path : setup.storage) {
    targets_.emplace_back(path, setup, static_cast<std::int32_t>(files_of(setup.effort)));
  }
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    RowSetup path = row_setup(setup, i, targets_[i]);
    path.share = share_of(setup, path);
    for (StorageRow& row : rows_of(path)) rows_.push_back(std::move(row));
  }
  spent_.resize(rows_.size(), 0);
}

std::vector<Row> StorageBench::rows() const {
  std::vector<Row> rows;
  for (const StorageRow& row : rows_) rows.push_back(row.row);
  return rows;
}

void StorageBench::prepare() {
  for (Target& target : targets_) target.prepare();
}

Sample StorageBench::sample(std::size_t row) {
  const StorageRow& now = rows_.at(row);
  const auto writes = static_cast<std::int64_t>(now.row.writes.value());
  if (spent_[row] + writes > samples_per_row * writes) {
    throw BudgetSpent(now.row.quantity + ": its part of the write budget is used up");
  }
  spent_[row] += writes;
  return now.take(targets_);
}

void StorageBench::finish() {
  for (Target& target : targets_) target.finish();
}

std::string why_no_storage(const Setup& setup) {
  return setup.storage.empty() ? "no folder was named (--storage NAME=FOLDER)" : "";
}

std::unique_ptr<Bench> make_storage(const Setup& setup) {
  return std::make_unique<StorageBench>(setup);
}

}  // namespace tidegate::calib
