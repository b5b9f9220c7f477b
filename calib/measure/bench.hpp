#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calib/rig/file.hpp"
#include "calib/rig/readings.hpp"
#include "models/base/units.hpp"

/// A benchmark: rows to measure and how one sample of a row is taken. When samples are taken, how
/// many, in which order and what spoils them is the protocol's business (protocol.hpp).
namespace tidegate::calib {

/// What a sample's value is.
enum class Unit : std::uint8_t {
  bytes_per_second,
  flops_per_second,
  per_second,
  seconds,
  fraction
};
const char* name_of(Unit unit);

/// What spoils a sample of the row.
enum class Gate : std::uint8_t { none, cpu, io };

/// One quantity at one setting: "nvme.read block=1 MiB depth=16".
struct Row {
  std::string quantity;                            ///< "nvme.read", "dram.triad", "adam"
  std::vector<std::pair<std::string, double>> at;  ///< {"block", 1048576}, {"depth", 16}
  Unit unit = Unit::bytes_per_second;
  Gate gate = Gate::cpu;
  Seconds target{0.2};       ///< how long one sample is meant to take
  Bytes writes;              ///< that one sample writes to storage
  std::string device;        ///< whose traffic is watched; empty: none
  double ceiling = 0;        ///< that physics sets to the value; 0: unknown
  std::string ceiling_from;  ///< "2 x DDR4-3200 channels", "PCIe 4.0 x4"

  /// "nvme.read/block=1048576/depth=16": names the row in files and messages.
  std::string id() const;
};

struct Sample {
  double value = 0;  ///< in the row's unit
  Seconds elapsed;
  std::int64_t read = 0, written = 0;  ///< bytes that we moved through the device
  bool is_verified = true;             ///< contents or checksum were as they must be
  std::vector<double> series;  ///< optional: values over equal parts of the sample, or latencies
  /// Why the sample does not count, where only the bench can know ("SM clock at 61 % of default:
  /// power cap"); empty when it does. Counted with those that a gate rejects.
  std::string spoiled;
};

/// A row has written its part of the write budget: its block ends with the samples that it has.
class BudgetSpent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Bench {
 public:
  virtual ~Bench() = default;
  virtual std::vector<Row> rows() const = 0;
  /// Before the first sample: memory, files written, kernels checked against their specification.
  virtual void prepare() {}
  /// One sample of rows()[row]; `warm_up` samples are not counted. Throws BudgetSpent.
  virtual Sample sample(std::size_t row) = 0;
  /// After the last sample; frees what prepare took.
  virtual void finish() {}
};

enum class Effort : std::uint8_t { quick, standard, full };

/// A storage path to be measured.
struct StorageTarget {
  std::string name;  ///< key of the profile's `paths`
  std::string folder;
  rig::FileSystem facts;
  bool is_shared = false;  ///< the nodes see one and the same file system
};

/// What is measured where.
struct Setup {
  Effort effort = Effort::standard;
  rig::HostFacts host;
  std::vector<StorageTarget> storage;
  Bytes file_size{0};        ///< of each scratch file, set by the budget
  Bytes write_budget{0};     ///< all that may be written to one storage path
  Bytes sustained{0};        ///< that the sustained write may write beside it; 0: not asked for
  std::int32_t threads = 1;  ///< most that CPU rows use
  std::uint64_t seed = 7;
};

struct BenchEntry {
  std::string_view name, help;
  /// Empty when it can run here, else why not.
  std::string (*why_not)(const Setup&);
  std::unique_ptr<Bench> (*make)(const Setup&);
};
/// In the order of the table in calib/bench/benches.cpp.
std::span<const BenchEntry> bench_table();

}  // namespace tidegate::calib
