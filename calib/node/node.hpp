#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calib/fit/fit.hpp"
#include "calib/fit/noise.hpp"
#include "calib/measure/protocol.hpp"

/// Measurements become a node profile (docs/profiles.md): values with source and uncertainty, fits
/// and tables, what drifted, what was not measured.
namespace tidegate::calib {

/// One key of a profile. `text` is what stands after "value:", or the points of a curve.
struct Entry {
  enum class Kind : std::uint8_t { value, points, plain };
  std::string key, text, source;
  double uncertainty = 0;  ///< one standard deviation, relative; 0: not told
  double freedom = -1;     ///< degrees of freedom that tell it; -1: it is not of blocks
  bool is_assumed = false;
  Kind kind = Kind::value;
};
struct Section {
  std::string key;  ///< "gpus", "host", "paths.nvme"
  std::vector<Entry> entries;
};

/// A quantity whose fit was not good enough, as a table.
struct MeasuredTable {
  std::string quantity;
  const char* unit = "";
  std::vector<std::string> coordinates;
  /// Coordinates, median, 95 % interval of the blocks, blocks.
  std::vector<std::vector<double>> rows;
};

/// A fit, and which rows of the quantity it is of: those that have these coordinates.
struct MeasuredFit {
  std::string quantity;
  std::vector<std::pair<std::string, double>> of;
  Fit fit;
};

struct CheckResult {
  std::string name, verdict, evidence;
};

/// How one row is spread over the nodes of a cluster, and which node is slow at what.
struct NodeSpread {
  std::string row;
  const char* unit = "";
  double least = 0, middle = 0, most = 0;
};
struct SlowNode {
  std::string node, evidence;
};

/// What is said about the measuring itself.
struct Account {
  std::string tool, created, command, raw_file, raw_hash;
  rig::HostFacts host;
  std::uint64_t seed = 7;
  GateLimits gate;
  std::vector<CheckResult> checks;
  std::vector<std::pair<std::string, std::string>> not_measured;  ///< name, reason
  std::int32_t nodes = 1;
  std::vector<NodeSpread> spreads;
  std::vector<SlowNode> slow;
};

/// GPUs whose values come from somewhere else: a component file of hw_profiles/components.
struct NamedGpus {
  std::string component;  ///< path
  std::int32_t count = 1;
};

/// The GPUs of the node, where CUDA found any.
struct GpuNames {
  std::string name;
  Bytes memory;
  std::int32_t count = 0;
};

struct NodeProfile {
  std::string name, description;
  std::vector<Section> sections;
  std::vector<MeasuredFit> fits;
  std::vector<MeasuredTable> tables;
  struct Floors {
    double compute = 0, io = 0, overlapped = 0;
  } floors;
  /// What blocks deviate by, of all rows of a kind: compute, storage, gpu.
  std::vector<std::pair<std::string, KnownSpread>> noise;
  std::vector<std::string> missing;  ///< keys that a profile needs and that nothing here tells
};

/// Without a GPU, and without `gpus`, the CPU is the device that computes: its matrix products, its
/// memory, memory copies for its link, half of the host's memory for its own.
///
///   uncertainty   of a value: the deviation of its blocks, drawn towards that of all rows of its
///   kind
///                 as far as few blocks tell little (calib/fit/noise.hpp)
///   error floor   what two runs of the same thing differ by: sqrt(2) times the spread between
///   passes,
///                 of compute rows, of storage rows, and of both for work that overlaps
///
/// Throws InputError when a component cannot be read.
NodeProfile node_profile(const Measurements& measurements, const Setup& setup,
                         const std::optional<NamedGpus>& gpus, const GpuNames& found = {});

/// The file. `account` goes into its section calibration.
std::string to_yaml(const NodeProfile& profile, const Measurements& measurements,
                    const Account& account);

}  // namespace tidegate::calib
