#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "calib/rig/host_buffer.hpp"
#include "calib/rig/io_queue.hpp"

/// What the engines share: one request on its way to a whole completion, and the faults put in.
/// Not for others than calib/rig.
namespace tidegate::rig::detail {

inline std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// A request that may need several transfers of the system. An engine asks `next` what to move,
/// tells `advance` what the system answered, and repeats until it is over.
class Transfer {
 public:
  Transfer() = default;
  Transfer(const IoRequest& request, const std::optional<IoFault>& fault);

  /// An injected error strikes before anything is moved.
  bool is_over() const { return is_over_; }
  struct Part {
    Direction direction;
    int descriptor;
    std::int64_t offset;
    std::span<std::byte> bytes;
  };
  Part next() const;
  /// `result`: bytes moved, or -errno.
  void advance(std::int64_t result);
  /// When the completion may be told: later than now only by an injected delay.
  std::int64_t due() const { return due_; }
  const IoCompletion& completion() const { return completion_; }

 private:
  void finish(int error);
  std::size_t limit() const;

  IoRequest request_;
  std::optional<IoFault> fault_;
  HostBuffer spoiled_;  // what reaches the file, of a corrupted write
  std::span<std::byte> bytes_;
  std::size_t done_ = 0;
  bool is_first_ = true, is_over_ = false;
  std::int64_t due_ = 0;
  IoCompletion completion_;
};

/// Hands out faults by the number of the request.
class FaultPlan {
 public:
  explicit FaultPlan(std::vector<IoFault> faults) : faults_(std::move(faults)) {}
  std::optional<IoFault> next();

 private:
  std::vector<IoFault> faults_;
  std::int64_t count_ = 0;
};

/// nullptr, with the reason in `why_not`, when there is none.
std::unique_ptr<IoQueue> make_ring(const IoOptions& options, std::string& why_not);
std::unique_ptr<IoQueue> make_threads(const IoOptions& options, std::string remark);

}  // namespace tidegate::rig::detail
