#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include <unistd.h>

#include "calib/rig/io_transfer.hpp"
#include "models/base/error.hpp"

namespace tidegate::rig::detail {
namespace {

/// As many workers as the queue is deep; each makes one blocking system call at a time.
class Threads : public IoQueue {
 public:
  Threads(const IoOptions& options, std::string remark)
      : depth_(options.depth), faults_(options.faults), remark_(std::move(remark)) {
    for (std::size_t i = 0; i < depth_; ++i) {
      workers_.emplace_back([this] { work(); });
    }
  }

  ~Threads() override {
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
    }
    wanted_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void submit(const IoRequest& request) override {
    own();
    std::unique_lock lock(mutex_);
    over_.wait(lock, [this] { return under_way_ < depth_; });
    waiting_.emplace_back(request, faults_.next());
    ++under_way_;
    wanted_.notify_one();
  }

  std::vector<IoCompletion> reap(std::size_t least) override {
    own();
    std::unique_lock lock(mutex_);
    over_.wait(lock, [&] { return finished_.size() >= least || under_way_ == 0; });
    return std::exchange(finished_, {});
  }

  std::size_t in_flight() const override {
    const std::lock_guard lock(mutex_);
    return under_way_ + finished_.size();
  }
  const char* engine() const override { return "threads"; }
  const std::string& remark() const override { return remark_; }

 private:
  void own() {
    if (owner_ == std::thread::id()) owner_ = std::this_thread::get_id();
    ensure(owner_ == std::this_thread::get_id(), "a queue belongs to one thread");
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wanted_.wait(lock, [this] { return is_closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Transfer transfer = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      run(transfer);
      lock.lock();
      finished_.push_back(transfer.completion());
      --under_way_;
      over_.notify_all();
    }
  }

  static void run(Transfer& transfer) {
    while (!transfer.is_over()) {
      const Transfer::Part part = transfer.next();
      const auto result =
          part.direction == Direction::read
              ? pread(part.descriptor, part.bytes.data(), part.bytes.size(), part.offset)
              : pwrite(part.descriptor, part.bytes.data(), part.bytes.size(), part.offset);
      transfer.advance(result < 0 ? -errno : result);
    }
    if (const std::int64_t left = transfer.due() - now(); left > 0) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(left));
    }
  }

  std::size_t depth_;
  FaultPlan faults_;
  std::string remark_;
  std::thread::id owner_;
  mutable std::mutex mutex_;
  std::condition_variable wanted_, over_;
  std::deque<Transfer> waiting_;
  std::vector<IoCompletion> finished_;
  std::size_t under_way_ = 0;
  bool is_closing_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<IoQueue> make_threads(const IoOptions& options, std::string remark) {
  return std::make_unique<Threads>(options, std::move(remark));
}

}  // namespace tidegate::rig::detail
