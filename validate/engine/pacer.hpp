#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/demand.hpp"
#include "models/work.hpp"
#include "validate/engine/worker.hpp"

/// Real devices, each held to a stated speed.
///
/// Every device (one direction of a link, a drive, memory, the cores of a socket, the fabric of a
/// GPU) serves whoever asks, one after the other, in the order of asking. A work asks for a small
/// part at a time (64 KiB, or 2 ms of kernels) and for the next when the last is served; so works
/// that meet on a device take turns, and how they share it comes out by itself: nobody computes
/// rates.
///
/// A part that takes a device for `service` is over at
///
///   max over its devices of ( max(when the device is free, when the part asks) + service )
///
/// and not before the part's own time alone. A part asks when the part before was due, or 20 ms
/// before that was really over, if that is later: what a thread loses because the system lets it
/// wait, the device makes up for, as a bucket of tokens does; what the host cannot do in time is
/// seen. A drive serves at its mixed rates while works of both directions are under way.
///
/// Speeds, latencies and which devices a work passes are those of the machine (Demand). Bursts of
/// drives are not played: the constructor throws InputError where the profile has one.
namespace tidegate {

class Pacer {
 public:
  /// demands[i] belongs to works[i] of the plan; resources are the devices.
  Pacer(std::span<const Resource> resources, std::vector<Demand> demands,
        Bytes part = Bytes(64 * 1024));
  ~Pacer();
  Pacer(const Pacer&) = delete;
  Pacer& operator=(const Pacer&) = delete;

  class Pass;

 private:
  struct Device;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Demand> demands_;
  Bytes part_;
};

/// One work on its way through its devices.
class Pacer::Pass {
 public:
  /// Of work `work`, which starts at `start`.
  Pass(Pacer& pacer, std::size_t work, Clock::time_point start);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Parts into which the work is cut, at least one.
  std::int64_t parts() const { return parts_; }
  /// Asks for the next part, the one before being over at `now`; returns when it is due.
  Clock::time_point next(Clock::time_point now);
  /// When the last part that was asked for is due; without one, after the latency.
  Clock::time_point due() const { return due_; }
  /// Time by which the host was later than a device makes up for, so far: part of due().
  Clock::duration lost() const { return lost_; }

 private:
  Pacer& pacer_;
  const Demand& demand_;
  std::int64_t parts_;
  Clock::time_point due_;
  Clock::duration lost_{};
};

}  // namespace tidegate
