#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

#include <liburing.h>

#include <fmt/core.h>

#include "calib/rig/io_transfer.hpp"
#include "models/base/error.hpp"

namespace tidegate::rig::detail {
namespace {

/// Made disabled and enabled by the thread that submits first, which the kernel then takes for the
/// single issuer.
bool open_ring(unsigned entries, io_uring& ring, bool& is_disabled, int& error) {
  constexpr unsigned best =
      IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_R_DISABLED;
  for (const unsigned flags : {best, unsigned{IORING_SETUP_COOP_TASKRUN}, 0U}) {
    io_uring_params parameters{};
    parameters.flags = flags;
    error = -io_uring_queue_init_params(entries, &ring, &parameters);
    is_disabled = (flags & IORING_SETUP_R_DISABLED) != 0;
    if (error == 0) return true;
    if (error != EINVAL) return false;  // EINVAL: an older kernel that lacks the flags
  }
  return false;
}

class Ring : public IoQueue {
 public:
  Ring(const IoOptions& options, const io_uring& ring, bool is_disabled)
      : ring_(ring), is_disabled_(is_disabled), faults_(options.faults), places_(options.depth) {
    for (std::size_t i = places_.size(); i > 0; --i) free_.push_back(i - 1);
  }

  ~Ring() override {
    // The kernel still writes to memory that the caller will free.
    try {
      while (in_kernel_ > 0) take(wait_for_ever);
    } catch (const MachineError&) {  // the ring itself fails: closing it ends what is under way
    }
    io_uring_queue_exit(&ring_);
  }

  void submit(const IoRequest& request) override {
    own();
    while (free_.empty()) await_one();
    const std::size_t place = free_.back();
    free_.pop_back();
    places_[place] = Transfer(request, faults_.next());
    proceed(place);
  }

  std::vector<IoCompletion> reap(std::size_t least) override {
    own();
    while (take(0)) {
    }
    release();
    while (finished_.size() < least && free_.size() < places_.size()) await_one();
    return std::exchange(finished_, {});
  }

  std::size_t in_flight() const override {
    return places_.size() - free_.size() + finished_.size();
  }
  const char* engine() const override { return "io_uring"; }
  const std::string& remark() const override { return remark_; }

 private:
  static constexpr std::int64_t wait_for_ever = -1;

  void own() {
    if (owner_ == std::thread::id()) {
      owner_ = std::this_thread::get_id();
      if (is_disabled_) enable();
    }
    ensure(owner_ == std::this_thread::get_id(), "a queue belongs to one thread");
  }

  // liburing 2.3 declares io_uring_enable_rings and does not export it.
  void enable() {
    if (syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) <
        0) {
      fail("io_uring_register", -errno);
    }
    ring_.flags &= ~unsigned{IORING_SETUP_R_DISABLED};
  }

  // Hands the next part to the kernel, or the request to those that are over.
  void proceed(std::size_t place) {
    Transfer& transfer = places_[place];
    if (transfer.is_over()) {
      over_.push_back(place);
      return release();
    }
    const Transfer::Part part = transfer.next();
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    ensure(entry != nullptr, "the ring has a place for each request");
    const auto length = static_cast<unsigned>(part.bytes.size());
    const auto offset = static_cast<std::uint64_t>(part.offset);
    if (part.direction == Direction::read) {
      io_uring_prep_read(entry, part.descriptor, part.bytes.data(), length, offset);
    } else {
      io_uring_prep_write(entry, part.descriptor, part.bytes.data(), length, offset);
    }
    io_uring_sqe_set_data64(entry, place);
    int result = 0;
    do {
      result = io_uring_submit(&ring_);
    } while (result == -EINTR || result == -EAGAIN);
    if (result < 0) fail("io_uring_submit", result);
    ++in_kernel_;
  }

  // One completion of the kernel, if there is one within `nanoseconds`.
  bool take(std::int64_t nanoseconds) {
    io_uring_cqe* entry = nullptr;
    __kernel_timespec time{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    int result = 0;
    do {
      result = nanoseconds == 0  ? io_uring_peek_cqe(&ring_, &entry)
               : nanoseconds > 0 ? io_uring_wait_cqe_timeout(&ring_, &entry, &time)
                                 : io_uring_wait_cqe(&ring_, &entry);
    } while (result == -EINTR);
    if (result == -EAGAIN || result == -ETIME) return false;
    if (result < 0) fail("io_uring_wait_cqe", result);
    const std::size_t place = io_uring_cqe_get_data64(entry);
    const int moved = entry->res;
    io_uring_cqe_seen(&ring_, entry);
    --in_kernel_;
    places_[place].advance(moved);
    proceed(place);
    return true;
  }

  // Of those that are over, the ones that are due become completions.
  void release() {
    const std::int64_t instant = now();
    std::erase_if(over_, [&](std::size_t place) {
      if (places_[place].due() > instant) return false;
      finished_.push_back(places_[place].completion());
      places_[place] = Transfer();
      free_.push_back(place);
      return true;
    });
  }

  void await_one() {
    std::int64_t due = wait_for_ever;
    for (const std::size_t place : over_) {
      due = due < 0 ? places_[place].due() : std::min(due, places_[place].due());
    }
    if (due < 0) {
      take(wait_for_ever);
      return;
    }
    const std::int64_t left = std::max<std::int64_t>(due - now(), 1);
    if (in_kernel_ > 0) {
      take(left);
    } else {
      std::this_thread::sleep_for(std::chrono::nanoseconds(left));
    }
    release();
  }

  [[noreturn]] static void fail(const char* call, int result) {
    throw MachineError(fmt::format("{}: {}", call, std::strerror(-result)));
  }

  io_uring ring_;
  bool is_disabled_;
  FaultPlan faults_;
  std::thread::id owner_;
  std::string remark_;
  std::vector<Transfer> places_;
  std::vector<std::size_t> free_, over_;  // indices of places_
  std::vector<IoCompletion> finished_;
  std::size_t in_kernel_ = 0;
};

}  // namespace

std::unique_ptr<IoQueue> make_ring(const IoOptions& options, std::string& why_not) {
  io_uring ring{};
  bool is_disabled = false;
  int error = 0;
  if (!open_ring(static_cast<unsigned>(options.depth), ring, is_disabled, error)) {
    const char* hint = error == EPERM    ? " (kernel.io_uring_disabled or a sandbox forbids it)"
                       : error == ENOSYS ? " (the kernel has none)"
                       : error == ENOMEM ? " (RLIMIT_MEMLOCK)"
                                         : "";
    why_not = fmt::format("io_uring is not to be had: {}{}", std::strerror(error), hint);
    return nullptr;
  }
  return std::make_unique<Ring>(options, ring, is_disabled);
}

}  // namespace tidegate::rig::detail
