#include <algorithm>
#include <exception>
#include <map>
#include <thread>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"
#include "calib/rig/host_buffer.hpp"
#include "calib/rig/numa.hpp"
#include "models/base/error.hpp"

/// numa.read: bytes per second that all CPUs of node `from` together read from memory of node `to`,
/// each a part of its own, and held on its CPU.
namespace tidegate::calib {
namespace {

std::vector<rig::NumaNode> with_cpus() {
  std::vector<rig::NumaNode> nodes = rig::numa_nodes();
  std::erase_if(nodes, [](const rig::NumaNode& node) { return node.cpus.empty(); });
  return nodes;
}

class Numa : public Bench {
 public:
  explicit Numa(const Setup& setup) : readers_(with_cpus()), memories_(rig::numa_nodes()) {
    // Four last-level caches, as far as this bench's part of the memory holds a buffer per node.
    const double wanted = std::max(256.0 * 1048576, 4 * setup.host.last_level_cache.value());
    const double granted = memory_part::numa * setup.host.memory_available.value() /
                           static_cast<double>(std::max<std::size_t>(memories_.size(), 1));
    bytes_ = static_cast<std::size_t>(std::min(wanted, granted)) / 65536 * 65536;
    const Clock clock = highest_clock();
    for (const rig::NumaNode& from : readers_) {
      for (const rig::NumaNode& to : memories_) {
        const auto threads = static_cast<int>(from.cpus.size());
        rows_.push_back(
            cpu_row("numa.read", {{"from", from.id}, {"to", to.id}}, Unit::bytes_per_second,
                    memory_ceiling(setup, clock, threads, Bytes(static_cast<double>(bytes_)), 1)));
        settings_.push_back({&from, to.id});
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    for (const rig::NumaNode& node : memories_) {
      const rig::MemoryOn here(node.id);
      buffers_[node.id] = rig::HostBuffer(bytes_);
      fill_keyed(buffers_[node.id].as<float>(), 7);
      checksum_ = cpu::read(buffers_[node.id].as<float>(), 1);
    }
  }

  Sample sample(std::size_t row) override {
    const auto& [from, to] = settings_[row];
    const auto all = std::as_const(buffers_).at(to).as<float>();
    const int node = rig::node_of(all.data() + all.size() / 2);
    if (node >= 0 && node != to) throw MachineError("memory does not lie on the node asked for");
    const double begin = now();
    std::int64_t rounds = 0;
    bool is_right = true;
    while (rounds == 0 || now() - begin < rows_[row].target.value()) {
      is_right = read_once(*from, all) && is_right;
      ++rounds;
    }
    const Seconds elapsed(now() - begin);
    return {.value = static_cast<double>(bytes_) * static_cast<double>(rounds) / elapsed.value(),
            .elapsed = elapsed,
            .is_verified = is_right};
  }

  void finish() override { buffers_.clear(); }

 private:
  struct Setting {
    const rig::NumaNode* from = nullptr;
    std::int32_t to = 0;
  };

  // Each CPU of the node reads its part; the sum of all is that of the buffer, modulo 2^32.
  bool read_once(const rig::NumaNode& node, std::span<const float> all) const {
    const std::size_t count = node.cpus.size();
    std::vector<double> sums(count);
    std::vector<std::exception_ptr> failures(count);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        try {
          const rig::OnCpu held(node.cpus[i]);
          const std::size_t begin = all.size() * i / count, end = all.size() * (i + 1) / count;
          sums[i] = cpu::read(all.subspan(begin, end - begin), 1);
        } catch (...) {  // carried to the caller's thread
          failures[i] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    std::uint32_t sum = 0;
    for (const double s : sums) sum += static_cast<std::uint32_t>(static_cast<std::uint64_t>(s));
    return sum == static_cast<std::uint32_t>(static_cast<std::uint64_t>(checksum_));
  }

  std::vector<rig::NumaNode> readers_, memories_;
  std::size_t bytes_ = 0;
  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  std::map<std::int32_t, rig::HostBuffer> buffers_;
  double checksum_ = 0;
};

}  // namespace

std::string why_not_numa(const Setup&) {
  return rig::numa_nodes().size() < 2 ? "one NUMA node: there is no pair to measure" : "";
}

std::unique_ptr<Bench> make_numa(const Setup& setup) { return std::make_unique<Numa>(setup); }

}  // namespace tidegate::calib
