#include <chrono>

#include <cuda_runtime_api.h>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/settings.hpp"
#include "calib/cuda/shim/check.hpp"
#include "calib/cuda/station.hpp"
#include "calib/rig/host_buffer.hpp"

// Page-locking: what a framework pays before its first fast copy. Registering is timed on memory
// whose pages exist, so that first touch is not in it.
namespace tidegate::cuda {
namespace {

enum class Kind { allocate, register_pages, free, unregister };

struct Setting {
  Kind kind = Kind::allocate;
  std::size_t bytes = 0;
};

Seconds time_of(const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  call();
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

// Time to pin, and to let go.
struct Times {
  Seconds pin, release;
};

Times allocated(std::size_t bytes) {
  void* at = nullptr;
  Times times;
  times.pin = time_of([&] { TIDEGATE_CUDA(cudaHostAlloc(&at, bytes, cudaHostAllocPortable)); });
  times.release = time_of([&] { TIDEGATE_CUDA(cudaFreeHost(at)); });
  return times;
}

Times registered(std::size_t bytes) {
  const rig::HostBuffer buffer(bytes);
  Times times;
  times.pin = time_of(
      [&] { TIDEGATE_CUDA(cudaHostRegister(buffer.data(), bytes, cudaHostRegisterPortable)); });
  times.release = time_of([&] { TIDEGATE_CUDA(cudaHostUnregister(buffer.data())); });
  return times;
}

class PinBench : public calib::Bench {
 public:
  explicit PinBench(const calib::Setup& setup) : gpu_(gpu_facts().front()) {
    // A quarter of what is available at most; 1 GiB where that is not told.
    const double available = setup.host.memory_available.value();
    const double most = available > 0 ? available / 4 : 1073741824.0;
    for (const std::int64_t size : pin_sizes(setup.effort, most)) {
      for (const Kind kind : {Kind::allocate, Kind::register_pages, Kind::free, Kind::unregister}) {
        settings_.push_back({kind, static_cast<std::size_t>(size)});
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Setting& s : settings_) {
      rows.push_back(gpu_row(
          "gpu.pin", {{"bytes", static_cast<double>(s.bytes)}, {"kind", static_cast<int>(s.kind)}},
          calib::Unit::seconds, gpu_, {}));
    }
    return rows;
  }

  calib::Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    const OnDevice here(gpu_.index);
    const NearGpu near(gpu_);
    const bool is_allocation = s.kind == Kind::allocate || s.kind == Kind::free;
    const Times times = is_allocation ? allocated(s.bytes) : registered(s.bytes);
    const bool is_pinning = s.kind == Kind::allocate || s.kind == Kind::register_pages;
    calib::Sample sample;
    sample.elapsed = is_pinning ? times.pin : times.release;
    sample.value = sample.elapsed.value();
    return sample;
  }

 private:
  GpuFacts gpu_;
  std::vector<Setting> settings_;
};

}  // namespace

std::string why_no_pin(const calib::Setup&) { return why_no_gpu(); }
std::unique_ptr<calib::Bench> make_pin(const calib::Setup& setup) {
  return std::make_unique<PinBench>(setup);
}

}  // namespace tidegate::cuda
