#include "calib/rig/io_transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "models/base/error.hpp"

namespace tidegate::rig::detail {
namespace {

constexpr std::size_t page = 4096;
// Below what one system call moves at most (0x7ffff000), and a multiple of every block.
constexpr std::size_t most_per_call = std::size_t{1} << 30;

void flip(std::span<std::byte> bytes) { bytes[bytes.size() / 2] ^= std::byte{1}; }

}  // namespace

Transfer::Transfer(const IoRequest& request, const std::optional<IoFault>& fault)
    : request_(request), fault_(fault), bytes_(request.bytes) {
  ensure(!bytes_.empty(), "a request moves at least one byte");
  completion_.tag = request.tag;
  completion_.submitted = now();
  if (!fault_) return;
  if (fault_->kind == IoFault::Kind::error) finish(fault_->error);
  if (fault_->kind == IoFault::Kind::corrupt && request.direction == Direction::write) {
    spoiled_ = HostBuffer(bytes_.size());
    std::memcpy(spoiled_.data(), bytes_.data(), bytes_.size());
    bytes_ = spoiled_.bytes();
    flip(bytes_);
  }
}

std::size_t Transfer::limit() const {
  const bool is_cut = is_first_ && fault_ && fault_->kind == IoFault::Kind::short_transfer;
  const std::size_t half = bytes_.size() / 2 / page * page;
  return is_cut && half > 0 ? half : std::min(most_per_call, bytes_.size() - done_);
}

Transfer::Part Transfer::next() const {
  return {request_.direction, request_.descriptor,
          request_.offset + static_cast<std::int64_t>(done_), bytes_.subspan(done_, limit())};
}

void Transfer::advance(std::int64_t result) {
  if (result == -EINTR || result == -EAGAIN) return;
  if (result < 0) return finish(static_cast<int>(-result));
  is_first_ = false;
  std::size_t reached = done_ + static_cast<std::size_t>(result);
  // Direct access continues at block boundaries only: the broken block is moved again.
  if (reached < bytes_.size()) reached = reached / page * page;
  if (reached <= done_) return finish(request_.direction == Direction::read ? ENODATA : EIO);
  done_ = reached;
  if (done_ == bytes_.size()) finish(0);
}

void Transfer::finish(int error) {
  is_over_ = true;
  const bool spoils = fault_ && fault_->kind == IoFault::Kind::corrupt;
  if (spoils && request_.direction == Direction::read) flip(bytes_);
  completion_.error = error;
  completion_.completed = due_ = now();
  if (fault_ && fault_->kind == IoFault::Kind::delay) {
    completion_.completed = due_ = due_ + fault_->nanoseconds;
  }
}

std::optional<IoFault> FaultPlan::next() {
  const std::int64_t index = count_++;
  const auto hit = std::ranges::find(faults_, index, &IoFault::at);
  if (hit == faults_.end()) return std::nullopt;
  return *hit;
}

}  // namespace tidegate::rig::detail
