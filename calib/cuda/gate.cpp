#include "calib/cuda/gate.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "calib/cuda/kernels.hpp"
#include "models/base/error.hpp"

namespace tidegate::cuda {
namespace {

// Opens on every way out and does not leave before all kernels have seen it.
class Gate {
 public:
  explicit Gate(std::span<const Lane> lanes) : lanes_(lanes), flags_(2 * sizeof(int)) {
    flag() = 1;
    timed_out() = 0;
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() {
    open();
    for (const Lane& lane : lanes_) {
      try {
        lane.stream->wait();
      } catch (const MachineError&) {
        // The stream is broken: it runs nothing that could still read the flag.
      }
    }
  }

  // Loads the kernel on every GPU while the gate is open.
  void rehearse() {
    for (const Lane& lane : lanes_) {
      const OnDevice here(lane.stream->device());
      occupy(lane, Seconds(1));
      lane.stream->wait();
    }
    flag() = 0;
  }
  void occupy(const Lane& lane, Seconds timeout) {
    hold(*lane.stream, flags_.as<int>(), flags_.as<int>() + 1,
         static_cast<std::uint64_t>(1e9 * timeout.value()));
  }
  void open() { flag() = 1; }
  bool has_timed_out() { return timed_out() != 0; }

 private:
  volatile int& flag() { return flags_.as<volatile int>()[0]; }
  volatile int& timed_out() { return flags_.as<volatile int>()[1]; }

  std::span<const Lane> lanes_;
  PinnedBuffer flags_;
};

struct Marks {
  Event start, stop;
};

}  // namespace

std::string why_no_gate() {
  const auto is_set = [](const char* name, std::string_view value) {
    const char* found = std::getenv(name);
    return found != nullptr && found == value;
  };
  if (is_set("CUDA_LAUNCH_BLOCKING", "1")) {
    return "CUDA_LAUNCH_BLOCKING is set: launches wait for the GPU; unset it";
  }
  if (is_set("CUDA_DEVICE_MAX_CONNECTIONS", "1")) {
    return "CUDA_DEVICE_MAX_CONNECTIONS is 1: streams share one queue and do not overlap; unset it";
  }
  return "";
}

std::vector<Seconds> time_behind_gate(std::span<const Lane> lanes, const GateOptions& options) {
  std::vector<Marks> marks;
  for (const Lane& lane : lanes) {
    ensure(lane.count <= most_queued, "a gated stream cannot queue so many operations");
    marks.push_back({Event(lane.stream->device()), Event(lane.stream->device())});
  }
  Gate gate(lanes);
  gate.rehearse();
  for (const Lane& lane : lanes) {
    const OnDevice here(lane.stream->device());
    gate.occupy(lane, options.timeout);
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const OnDevice here(lanes[i].stream->device());
    marks[i].start.record(*lanes[i].stream);
    for (int j = 0; j < lanes[i].count; ++j) lanes[i].operation(j);
    marks[i].stop.record(*lanes[i].stream);
  }
  gate.open();
  if (options.while_running) options.while_running();
  std::vector<Seconds> times;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    marks[i].stop.wait();
    times.push_back(between(marks[i].start, marks[i].stop));
  }
  if (gate.has_timed_out()) {
    throw MachineError(
        "the timing gate opened by itself: a call that was to be queued waited for the GPU");
  }
  return times;
}

Seconds time_covered(std::span<const Lane> measured,
                     const std::function<std::vector<Lane>(int count)>& beside, int count,
                     const GateOptions& options) {
  for (int more = count;; more = std::min(2 * more, most_queued)) {
    std::vector<Lane> lanes(measured.begin(), measured.end());
    std::ranges::copy(beside(more), std::back_inserter(lanes));
    const std::vector<Seconds> times = time_behind_gate(lanes, options);
    const auto split = times.begin() + static_cast<std::ptrdiff_t>(measured.size());
    const Seconds last = *std::max_element(times.begin(), split);
    if (*std::min_element(split, times.end()) >= last) return last;
    if (more >= most_queued) {
      throw MachineError("what was to run beside a measurement is over before it");
    }
  }
}

}  // namespace tidegate::cuda
