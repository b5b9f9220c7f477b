#include "calib/bench/numa.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include "calib/bench/chain.hpp"
#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

using Pages = rig::HostBuffer::Pages;

class Numa : public Bench {
 public:
  Numa(const Setup& setup, NumaPlaces places) : places_(std::move(places)) {
    // Four last-level caches, as far as this bench's part of the memory holds two buffers per node.
    const double wanted = std::max(256.0 * 1048576, 4 * setup.host.last_level_cache.value());
    const double granted = memory_part::numa * setup.host.memory_available.value() / 2 /
                           static_cast<double>(std::max<std::size_t>(places_.nodes.size(), 1));
    bytes_ = static_cast<std::size_t>(std::min(wanted, granted)) / 65536 * 65536;
    const Clock clock = highest_clock();
    for (const rig::NumaNode& from : places_.nodes) {
      if (from.cpus.empty()) continue;
      for (const rig::NumaNode& to : places_.nodes) add(setup, clock, from, to.id);
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    for (const rig::NumaNode& node : places_.nodes) {
      Buffers& own = buffers_[node.id];
      own.stream = places_.memory(node.id, bytes_, Pages::usual);
      own.chain = places_.memory(node.id, bytes_, Pages::huge);
      fill_keyed(own.stream.as<float>(), 7);
      link(own.chain.as<Line>());
    }
    if (!buffers_.empty()) {
      checksum_ = cpu::read(std::as_const(buffers_).begin()->second.stream.as<float>(), 1);
    }
  }

  Sample sample(std::size_t row) override {
    const Setting& setting = settings_[row];
    return setting.is_latency ? latency(setting, row) : bandwidth(setting, row);
  }

  void finish() override { buffers_.clear(); }

 private:
  struct Setting {
    const rig::NumaNode* from = nullptr;
    std::int32_t to = 0;
    bool is_latency = false;
  };
  struct Buffers {
    rig::HostBuffer stream, chain;
    std::uint32_t at = 0;  // of the walk, which goes on from sample to sample
  };

  void add(const Setup& setup, const Clock& clock, const rig::NumaNode& from, std::int32_t to) {
    const auto threads = static_cast<int>(from.cpus.size());
    const Settings at = {{"from", from.id}, {"to", to}};
    rows_.push_back(
        cpu_row("numa.read", at, Unit::bytes_per_second,
                memory_ceiling(setup, clock, threads, Bytes(static_cast<double>(bytes_)), 1)));
    settings_.push_back({&from, to, false});
    rows_.push_back(cpu_row("numa.latency", at, Unit::seconds, {}));
    settings_.push_back({&from, to, true});
  }

  void check_place(const rig::HostBuffer& buffer, std::int32_t wanted) const {
    const std::int32_t node = places_.node_of(buffer.data() + buffer.size() / 2);
    if (node >= 0 && node != wanted) {
      throw MachineError("memory does not lie on the node asked for");
    }
  }

  Sample bandwidth(const Setting& setting, std::size_t row) {
    const rig::HostBuffer& buffer = buffers_.at(setting.to).stream;
    check_place(buffer, setting.to);
    bool is_right = true;
    const Timed timed = run_for(rows_[row].target, [&] {
      is_right = read_once(*setting.from, buffer.as<float>()) && is_right;
    });
    return {.value = timed.rate(static_cast<double>(bytes_)),
            .elapsed = timed.elapsed,
            .is_verified = is_right};
  }

  Sample latency(const Setting& setting, std::size_t row) {
    Buffers& buffers = buffers_.at(setting.to);
    check_place(buffers.chain, setting.to);
    const rig::OnCpu held(setting.from->cpus.front());
    const Walk walked = walk(buffers.chain.as<Line>(), buffers.at, rows_[row].target);
    buffers.at = walked.at;
    return {.value = walked.elapsed.value() / walked.steps,
            .elapsed = walked.elapsed,
            .is_verified = walked.is_right};
  }

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

  NumaPlaces places_;
  std::size_t bytes_ = 0;
  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  std::map<std::int32_t, Buffers> buffers_;
  double checksum_ = 0;
};

}  // namespace

NumaPlaces numa_here() {
  return {.nodes = rig::numa_nodes(),
          .memory =
              [](std::int32_t node, std::size_t bytes, Pages pages) {
                const rig::MemoryOn here(node);
                return rig::HostBuffer(bytes, pages);
              },
          .node_of = rig::node_of};
}

std::string why_not_numa(const Setup&) {
  return rig::numa_nodes().size() < 2 ? "one NUMA node: there is no pair to measure" : "";
}

std::unique_ptr<Bench> make_numa(const Setup& setup, NumaPlaces places) {
  return std::make_unique<Numa>(setup, std::move(places));
}
std::unique_ptr<Bench> make_numa(const Setup& setup) { return make_numa(setup, numa_here()); }

}  // namespace tidegate::calib
