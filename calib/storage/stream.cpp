#include "calib/storage/stream.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include <sys/resource.h>

#include <fmt/core.h>

#include "calib/rig/interrupt.hpp"
#include "calib/rig/io_queue.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Stream {
 public:
  Stream(Target& target, const StreamPlan& plan)
      : target_(target),
        plan_(plan),
        size_(plan.other != nullptr ? plan.size : target.file_size()),
        queue_(rig::make_io_queue({.depth = plan.depth})),
        slots_(plan.depth) {
    ensure(plan.block > 0 && size_ >= plan.block, "a block fits in the file");
    constexpr auto period = static_cast<std::int64_t>(Content::period);
    ensure(period % plan.block == 0 || plan.block % period == 0, "blocks and period fit together");
    ensure(plan.other != nullptr || plan.files <= target.files().size(), "the files are there");
    const auto block = static_cast<std::size_t>(plan.block);
    // A slot has the content of one period, so that it serves any position after a new stamp.
    stride_ = plan.own_bytes.empty() ? std::max(block, Content::period) : block;
    memory_ = plan.own_bytes.empty()
                  ? target.memory(plan.direction, stride_ * plan.depth, plan.pages)
                  : plan.own_bytes;
    ensure(memory_.size() >= stride_ * plan.depth, "each block under way has its memory");
    for (std::size_t i = plan.depth; i > 0; --i) free_.push_back(i - 1);
  }

  StreamResult run() {
    const double cpu = cpu_seconds();
    start_ = now();
    end_ = start_ + static_cast<std::int64_t>(1e9 * std::min(plan_.most_time.value(), 1e9));
    while (true) {
      while (!free_.empty() && wants_more()) submit();
      if (queue_->in_flight() == 0) break;
      take(queue_->reap(1));
    }
    if (plan_.flushes && error_ == 0) flush();
    result_.elapsed = Seconds(1e-9 * static_cast<double>(now() - start_));
    result_.cpu = cpu_seconds() - cpu;
    result_.block = plan_.block;
    rig::check_interrupt();
    if (error_ != 0) {
      throw MachineError(fmt::format("{} in {} at offset {}: {}",
                                     plan_.direction == Direction::read ? "read" : "write",
                                     target_.path().folder, error_at_, std::strerror(error_)));
    }
    if (plan_.direction == Direction::read && plan_.verifies) verify();
    return result_;
  }

 private:
  struct Slot {
    std::int64_t position = -1;  // of the content that it holds; -1: none yet
    std::int64_t offset = 0;
  };

  bool wants_more() {
    if (error_ != 0 || rig::is_interrupted()) return false;
    if (submitted_ + plan_.block > plan_.most_bytes) return false;
    if (plan_.other != nullptr && plan_.direction == Direction::write &&
        submitted_ + plan_.block > size_) {
      return false;
    }
    pace();
    return now() < end_;
  }

  // A bucket of one block: the n-th block starts no earlier than n blocks' time after the start.
  void pace() const {
    if (plan_.rate.value() <= 0) return;
    const double due = static_cast<double>(submitted_) / plan_.rate.value();
    const std::int64_t wait = start_ + static_cast<std::int64_t>(1e9 * due) - now();
    const std::int64_t left = end_ - now();
    if (std::min(wait, left) <= 0) return;
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(wait, left)));
  }

  std::int64_t next_offset() {
    const std::int64_t blocks = size_ / plan_.block;
    if (plan_.order == Order::random) {
      return plan_.block * static_cast<std::int64_t>(target_.random(plan_.direction) %
                                                     static_cast<std::uint64_t>(blocks));
    }
    if (plan_.other != nullptr) return (plan_.from + submitted_) % (blocks * plan_.block);
    std::int64_t& cursor = target_.cursor(plan_.direction);
    const std::int64_t offset = cursor / plan_.block % blocks * plan_.block;
    // Of several files, each gets the block before the cursor goes on.
    if ((turn_ + 1) % plan_.files == 0) cursor = (offset + plan_.block) % (blocks * plan_.block);
    return offset;
  }

  void submit() {
    const std::size_t place = free_.back();
    const std::size_t file = plan_.other != nullptr ? 0 : turn_ % plan_.files;
    Slot& slot = slots_[place];
    slot.offset = next_offset();
    slot.position = plan_.other != nullptr ? slot.offset : target_.position(file, slot.offset);
    ++turn_;
    const std::span<std::byte> bytes = bytes_of(place);
    if (plan_.direction == Direction::write) {
      target_.charge(plan_.block);
      if (plan_.own_bytes.empty()) target_.content().restamp(bytes, slot.position);
    }
    free_.pop_back();
    const int descriptor =
        (plan_.other != nullptr ? *plan_.other : target_.files()[file]).descriptor();
    queue_->submit({plan_.direction, descriptor, slot.offset, bytes, place});
    submitted_ += plan_.block;
  }

  std::span<std::byte> bytes_of(std::size_t place) const {
    const auto position = static_cast<std::size_t>(slots_[place].position);
    const std::size_t phase = plan_.own_bytes.empty() ? position % Content::period : 0;
    return memory_.subspan(place * stride_ + phase, static_cast<std::size_t>(plan_.block));
  }

  void take(const std::vector<rig::IoCompletion>& completions) {
    for (const rig::IoCompletion& c : completions) {
      free_.push_back(c.tag);
      if (c.error != 0) {
        if (error_ == 0) error_at_ = slots_[c.tag].offset;
        error_ = c.error;
        continue;
      }
      result_.bytes += plan_.block;
      result_.latencies.push_back(1e-9 * static_cast<double>(c.completed - c.submitted));
      result_.at.push_back(1e-9 * static_cast<double>(c.completed - start_));
    }
  }

  void flush() const {
    if (plan_.other != nullptr) return rig::flush(*plan_.other);
    for (std::size_t i = 0; i < plan_.files; ++i) rig::flush(target_.files()[i]);
  }

  // What lies in memory now is the last block that each place has read.
  void verify() {
    for (std::size_t place = 0; place < slots_.size(); ++place) {
      if (slots_[place].position < 0) continue;
      result_.wrong_blocks +=
          target_.content().wrong_blocks(bytes_of(place), slots_[place].position);
    }
  }

  Target& target_;
  StreamPlan plan_;
  std::int64_t size_;
  std::unique_ptr<rig::IoQueue> queue_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  std::span<std::byte> memory_;
  std::size_t stride_ = 0, turn_ = 0;
  std::int64_t start_ = 0, end_ = 0, submitted_ = 0, error_at_ = 0;
  int error_ = 0;
  StreamResult result_;
};

}  // namespace

std::vector<double> StreamResult::series(std::size_t parts) const {
  if (parts == 0 || at.size() < 10 * parts || at.back() <= 0) return {};
  std::vector<double> rates(parts, 0);
  const double length = at.back() / static_cast<double>(parts);
  for (const double instant : at) {
    const auto part = static_cast<std::size_t>(std::max(instant, 0.0) / length);
    rates[std::min(part, parts - 1)] += static_cast<double>(block) / length;
  }
  return rates;
}

StreamResult stream(Target& target, const StreamPlan& plan) {
  if (plan.direction == Direction::read && plan.forgets_cache) target.forget_cache();
  return Stream(target, plan).run();
}

void fill_file(Target& target, std::size_t file) {
  const rig::ScratchFile& at = target.files()[file];
  const auto queue = rig::make_io_queue({.depth = 8});
  constexpr std::size_t step = 8 * Content::period;
  const std::span<std::byte> bytes = target.memory(Direction::write, step);
  for (std::int64_t offset = 0; offset < target.file_size();) {
    rig::check_interrupt();
    const auto left = static_cast<std::size_t>(target.file_size() - offset);
    const auto part = bytes.first(std::min(step, left));
    target.charge(static_cast<std::int64_t>(part.size()));
    target.content().restamp(part, target.position(file, offset));
    rig::transfer(*queue, Direction::write, at.descriptor(), offset, part, Content::period);
    offset += static_cast<std::int64_t>(part.size());
  }
  rig::flush(at);
}

}  // namespace tidegate::calib
