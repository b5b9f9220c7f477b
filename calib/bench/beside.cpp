#include <cmath>
#include <exception>
#include <thread>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"
#include "calib/rig/host_buffer.hpp"
#include "calib/storage/rows.hpp"
#include "calib/storage/storage_bench.hpp"

/// NAME.adam_beside_read: what an AdamW step in memory keeps of its rate while a path is read, and
/// NAME.read_beside_adam: what the reads keep. Both take cores and memory bandwidth from each
/// other.
///
/// A sample is alone, together, together, alone, so that a steady drift of the machine cancels: the
/// sum of both rates together over that of both alone.
namespace tidegate::calib {
namespace {

constexpr double file_size = 256.0 * mib;
constexpr std::size_t held = 16;  // p, m, v and g in fp32
constexpr Seconds piece{0.15};
const cpu::AdamOptions options = {.step = 1000};

struct Rates {
  double adam = 0, read = 0;
  std::int64_t bytes = 0;
  bool is_right = true;
};

class Beside : public Bench {
 public:
  explicit Beside(const Setup& setup)
      : parameters_(std::min(fitting(setup, memory_part::beside, held), std::size_t{16} << 20)),
        threads_(std::max(setup.threads, 1)) {
    Setup own = setup;
    own.file_size = Bytes(std::min(file_size, setup.file_size.value()));
    own.write_budget = 2 * own.file_size;
    for (const StorageTarget& path : setup.storage) {
      targets_.emplace_back(path, own, 1);
      for (const char* what : {".adam_beside_read", ".read_beside_adam"}) {
        Row row;
        row.quantity = path.name + what;
        row.at = {{"threads", threads_}, {"block", mib}, {"depth", 16}};
        row.unit = Unit::fraction;
        row.gate = Gate::io;
        row.target = 4 * piece;
        row.device = path.facts.device;
        rows_.push_back(row);
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    for (Target& target : targets_) target.prepare();
    std::uint32_t key = 6;
    for (rig::HostBuffer* buffer : {&p_, &m_, &v_, &g_}) {
      *buffer = rig::HostBuffer(parameters_ * sizeof(float));
      fill_keyed(buffer->as<float>(), key++);
    }
  }

  Sample sample(std::size_t row) override {
    const double begin = now();
    Target& target = targets_[row / 2];
    const Rates first = alone(target), second = together(target), third = together(target),
                last = alone(target);
    const bool is_adam = row % 2 == 0;
    const double beside = is_adam ? second.adam + third.adam : second.read + third.read;
    const double by_itself = is_adam ? first.adam + last.adam : first.read + last.read;
    return {.value = beside / by_itself,
            .elapsed = Seconds(now() - begin),
            .read = first.bytes + second.bytes + third.bytes + last.bytes,
            .is_verified = first.is_right && second.is_right && third.is_right && last.is_right &&
                           std::isfinite(p_.as<float>()[0])};
  }

  void finish() override {
    for (Target& target : targets_) target.finish();
    p_ = {}, m_ = {}, v_ = {}, g_ = {};
  }

 private:
  double adam() {
    const Timed timed = run_for(piece, [this] {
      cpu::adam(p_.as<float>(), m_.as<float>(), v_.as<float>(), g_.as<float>(), options, threads_);
    });
    return timed.rate(static_cast<double>(parameters_));
  }

  static void read(Target& target, Seconds time, Rates& rates) {
    const StreamResult r = stream(target, {.direction = Direction::read, .most_time = time});
    rates.read = r.rate();
    rates.bytes += r.bytes;
    rates.is_right = r.wrong_blocks == 0;
  }

  Rates alone(Target& target) {
    Rates rates;
    rates.adam = adam();
    read(target, piece, rates);
    return rates;
  }

  // Both for the same time; a step that began within it ends a little later.
  Rates together(Target& target) {
    Rates rates;
    std::exception_ptr failure;
    std::thread reader([&] {
      try {
        read(target, piece, rates);
      } catch (...) {  // carried to the caller's thread
        failure = std::current_exception();
      }
    });
    const double rate = adam();
    reader.join();
    if (failure) std::rethrow_exception(failure);
    rates.adam = rate;
    return rates;
  }

  std::size_t parameters_;
  int threads_;
  std::vector<Target> targets_;
  std::vector<Row> rows_;
  rig::HostBuffer p_, m_, v_, g_;
};

}  // namespace

std::unique_ptr<Bench> make_beside(const Setup& setup) { return std::make_unique<Beside>(setup); }

}  // namespace tidegate::calib
