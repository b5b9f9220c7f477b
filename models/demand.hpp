#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "models/base/units.hpp"

/// What a machine says about one work: how long alone, and which fraction of each shareable rate it
/// takes meanwhile. This is all that the engine ever sees of a device.
namespace tidegate {

enum class ResourceId : std::uint16_t {};
constexpr std::size_t index(ResourceId r) { return static_cast<std::size_t>(r); }

/// A shareable rate. Its capacity is 1; users take fractions of it.
///
/// A resource may have two sides (a drive's reads and writes) that share the one capacity. While
/// both sides are busy, each user's fraction costs `mixed_cost[side]` times as much. With pure
/// rates R, W and mixed rates R', W' (each stated as if alone on the shared budget, r/R' + w/W' <=
/// 1), mixed_cost = {R/R', W/W'}.
///
/// A resource may tire: side 1 (writes) works at full rate for `burst` seconds of full-rate work,
/// then each side-1 user's fraction costs `tired_cost` times as much. Without side-1 work the burst
/// refills at `recovery` seconds of work per second, and what has been refilled can be spent again.
/// burst = 0 means it never tires.
struct Resource {
  std::string name;
  std::array<double, 2> mixed_cost = {1, 1};
  Seconds burst;
  double tired_cost = 1;
  double recovery = 0;
};

struct Share {
  ResourceId resource{};
  std::uint8_t side = 0;
  double fraction = 0;  ///< of the resource's capacity while the work runs alone, in (0, 1]
  bool operator==(const Share&) const = default;
};

/// latency, then `amount` units of work at up to amount/alone units per second. Concurrent works
/// divide each resource max-min fairly in units per second over `weight`.
struct Demand {
  /// A collective of eight GPUs takes the links and a part of the cores of each, and the networks
  /// of up to four nodes, in and out.
  static constexpr std::size_t most_shares = 24;

  Seconds latency;
  Seconds alone;      ///< without the latency
  double amount = 0;  ///< bytes moved, or seconds of GPU kernels
  /// Makes amounts comparable: bytes weigh 1; a second of kernels counts as the bytes that GPU
  /// memory moves in a second. So copies and collectives get what they ask for, as DMA engines and
  /// NICs do, and kernels run on what is left.
  double weight = 1;
  std::array<Share, most_shares> shares{};
  std::uint8_t share_count = 0;

  std::span<const Share> used() const { return {shares.data(), share_count}; }
  void use(ResourceId resource, double fraction, std::uint8_t side = 0);
};

}  // namespace tidegate
