#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/run/predict.hpp"

/// What a setting of asynchronous I/O gets out of a storage path, by the model of models/price.cpp:
///
///   one rank alone    r(f) = bytes / (latency + bytes / (rate · f / (f + half)))
///   f = block · depth · threads, at most the bytes of a transfer; at most what a client reaches
///   n ranks at once   min(rate, n · r(f)) together
///
/// `half` is the profile's block_half_size, which calib fits to rates over block size × depth
/// (docs/storage_benchmarks.md). Only the product counts; that small blocks run into a drive's
/// requests per second, and what submitting costs the CPU, is not in it.
namespace tidegate {

struct AioSetting {
  Bytes block;
  std::int32_t depth = 1, threads = 1;
  Bytes in_flight() const { return block * depth * threads; }
};

struct AioRates {
  Bytes in_flight;
  BytesPerSecond read, write;                    ///< of one rank alone
  BytesPerSecond read_together, write_together;  ///< of all ranks that use the path
};

/// A storage path that a scenario reads and writes.
struct AioPath {
  std::string name;
  BytesPerSecond read, write;  ///< of the path, with as much in flight as it likes
  Bytes half;
  std::string half_source;  ///< "assumed: …" or where it was measured
  Bytes transfer;           ///< the largest that the plan makes at once
  std::int32_t ranks = 1;   ///< of a node that use it
  AioSetting now;
  AioRates at_now;
  std::vector<AioRates> rates;  ///< by powers of two in flight
  /// The least of these with which all ranks together reach the path's rates but for the margin.
  std::optional<Bytes> enough;
};

struct AioTable {
  std::string scenario, profile, revision;
  double margin = 0;
  std::vector<AioPath> paths;  ///< that are used; empty where nothing is kept in files
};

AioTable aio_table(const Scenario& scenario, const Prediction& prediction, double margin);

std::string to_text(const AioTable& table, std::size_t width = 80);
/// One object, as in docs/aio_json.md.
std::string to_json(const AioTable& table);

}  // namespace tidegate
