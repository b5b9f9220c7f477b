#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "calib/storage/stream.hpp"

/// The rows of a storage path. Each part of the benchmark is one function that lists its rows and
/// says how a sample of each is taken; storage_bench.cpp has the table of parts.
///
/// Coordinates: block (bytes), depth (blocks under way in all), files (that they are spread over),
/// and `buffered` = 1 where the file system has no direct access: such numbers are the file
/// system's, page cache included, never a drive's.
namespace tidegate::calib {

/// What the rows of a path are made from.
struct RowSetup {
  Effort effort = Effort::standard;
  std::size_t path = 0;      ///< index of the target
  std::string name, device;  ///< of the path
  std::size_t paths = 1;     ///< how many there are, for rows that use all at once
  bool is_buffered = false;
  std::int64_t file_size = 0;
  std::size_t files = 1;
  std::size_t most_depth = 64;  ///< the device's requests
  double ceiling = 0;
  std::string ceiling_from;
  Seconds target{0.5};
  /// Bytes that a sample of a plain write row may write; 0 while rows are only counted.
  std::int64_t share = 0;
};

struct StorageRow {
  Row row;
  double shares = 0;  ///< what a sample writes, in shares of the budget
  std::function<Sample(std::span<Target> targets)> take;
};

using Part = std::vector<StorageRow> (*)(const RowSetup&);
std::vector<StorageRow> read_rows(const RowSetup&);      ///< .read, .read_small_pages
std::vector<StorageRow> write_rows(const RowSetup&);     ///< .write, .write_extend
std::vector<StorageRow> mixed_rows(const RowSetup&);     ///< .mixed_read, .mixed_write
std::vector<StorageRow> latency_rows(const RowSetup&);   ///< .latency_read, .latency_write
std::vector<StorageRow> flush_rows(const RowSetup&);     ///< .flush
std::vector<StorageRow> cpu_rows(const RowSetup&);       ///< .cpu_read, .cpu_write
std::vector<StorageRow> together_rows(const RowSetup&);  ///< .together_read, .together_write
std::vector<StorageRow> small_rows(const RowSetup&);     ///< .small_files

/// So many shares in whole MiB, at least a block.
std::int64_t bytes_of(const RowSetup& setup, double shares, std::int64_t block);

/// A row of the path with what all of them have in common.
Row make_row(const RowSetup& setup, const std::string& quantity,
             std::vector<std::pair<std::string, double>> at, Unit unit = Unit::bytes_per_second);

/// One setting of a stream.
struct Setting {
  std::int64_t block = 0;
  std::size_t depth = 1, files = 1;
};
/// quick: few; full: the grid. Only what the files, the device and 256 MiB under way allow.
std::vector<Setting> settings(const RowSetup& setup);
/// The same without what is left out of write rows, to save the drive: every other depth.
std::vector<Setting> write_settings(const RowSetup& setup);
std::vector<std::pair<std::string, double>> coordinates(const Setting& setting);

/// A sample whose value is the stream's rate.
Sample rate_sample(const StreamResult& result, Direction direction);

/// Both streams at once, each by its own thread. A failure of either is thrown when both are over.
std::vector<StreamResult> streams(std::span<Target*> targets, std::span<const StreamPlan> plans);

constexpr std::int64_t kib = 1 << 10, mib = 1 << 20;

}  // namespace tidegate::calib
