#include "validate/cuda/cuda_devices.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "calib/cuda/facts.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/shim/cublas_lt.hpp"
#include "calib/cuda/shim/handles.hpp"
#include "calib/cuda/shim/memory_pool.hpp"
#include "calib/cuda/station.hpp"
#include "models/base/error.hpp"
#include "validate/cuda/cuda_files.hpp"
#include "validate/cuda/cuda_teams.hpp"
#include "validate/cuda/gpu_works.hpp"

namespace tidegate {
namespace {

using cuda::Matmul;
using cuda::Weights;

/// The library's plan for each product that a seat will run.
class Products {
 public:
  explicit Products(int device) : device_(device) {}

  void prepare(const Gemm& gemm, Weights weights = Weights::by_outputs) {
    if (find(gemm, weights) == nullptr)
      known_.push_back({gemm, weights, Matmul(device_, gemm, 1, weights)});
  }
  const Matmul& of(const Gemm& gemm, Weights weights = Weights::by_outputs) const {
    const Matmul* known = find(gemm, weights);
    ensure(known != nullptr, "a seat was told which kernels it runs");
    return *known;
  }

 private:
  struct Known {
    Gemm gemm;
    Weights weights;
    Matmul matmul;
  };
  int device_;
  std::vector<Known> known_;

  const Matmul* find(const Gemm& gemm, Weights weights) const {
    for (const Known& k : known_) {
      if (k.gemm == gemm && k.weights == weights) return &k.matmul;
    }
    return nullptr;
  }
};

std::size_t bytes_of(std::int64_t elements, DType type) {
  constexpr std::size_t grain = 256;
  const auto bytes =
      static_cast<std::size_t>(static_cast<double>(elements) * bytes_per_element(type));
  return (bytes + grain - 1) / grain * grain;
}

class CudaSeat final : public DeviceSeat {
 public:
  CudaSeat(int device, std::span<const Kernel> kernels) : stream_(device), products_(device) {
    const cuda::OnDevice here(device);
    Room room;
    for (const Kernel& kernel : kernels) {
      room = room.with(room_of(kernel));
      if (const auto* gemm = std::get_if<Gemm>(&kernel)) products_.prepare(*gemm);
      if (const auto* attention = std::get_if<Attention>(&kernel)) {
        const EagerAttention parts = eager(*attention);
        products_.prepare(parts.scores);
        products_.prepare(parts.sums, Weights::by_inputs);
      }
    }
    read_ = cuda::DeviceBuffer(device, static_cast<std::size_t>(room.read));
    written_ = cuda::DeviceBuffer(device, static_cast<std::size_t>(room.written));
    // Halves of fp32 numbers too: ordinary whatever they are read as.
    constexpr std::uint32_t seed = 1;
    if (room.read > 0)
      cuda::fill_uniform(stream_, read_.data(), DType::bf16, read_.size() / 16 * 8, seed);
    // What the driver loads with the first launch of a kernel is loaded now.
    enqueue(kernels);
    stream_.wait();
  }

  void copy(std::span<const std::byte> from, std::span<std::byte> to) override {
    const cuda::OnDevice here(stream_.device());
    for (std::size_t at = 0; at < from.size();) {
      const std::size_t size =
          std::min({from.size() - at, to_border(from.data() + at), to_border(to.data() + at)});
      cuda::copy(stream_, to.data() + at, from.data() + at, size);
      at += size;
    }
    stream_.wait();
  }

  void copy_pieces(std::span<const std::byte> from, std::span<std::byte> to, std::size_t each,
                   std::size_t pitch) override {
    if (from.size() <= pitch) return copy(from.first(each), to.first(each));
    const cuda::OnDevice here(stream_.device());
    const std::size_t count = (from.size() - each) / pitch + 1;
    cuda::copy_pieces(stream_, to.data(), from.data(), each, pitch, count);
    stream_.wait();
  }

  void copy_to(std::uint16_t gpu, std::span<const std::byte> from,
               std::span<std::byte> to) override {
    const cuda::OnDevice here(stream_.device());
    cuda::copy_to_peer(stream_, gpu, to.data(), from.data(), from.size());
    stream_.wait();
  }

  void run(std::span<const Kernel> kernels) override {
    const cuda::OnDevice here(stream_.device());
    enqueue(kernels);
    stream_.wait();
  }

 private:
  cuda::Stream stream_;
  Products products_;
  cuda::DeviceBuffer read_, written_;

  static std::size_t to_border(const std::byte* at) {
    return Device::pinned_piece - reinterpret_cast<std::uintptr_t>(at) % Device::pinned_piece;
  }

  void enqueue(std::span<const Kernel> kernels) const {
    for (const Kernel& kernel : kernels) {
      std::visit([this](const auto& k) { enqueue(k); }, kernel);
    }
  }

  void enqueue(const Gemm& g) const {
    const std::byte* const w = read_.data() + bytes_of(g.batch * g.m * g.k, g.dtype);
    products_.of(g).enqueue(stream_, 0, read_.data(), w, written_.data());
  }

  void enqueue(const Attention& a) const {
    const auto [scores, sums, heads, runs] = eager(a);
    const std::byte* const k = read_.data() + bytes_of(heads * a.queries * a.head_dim, a.dtype);
    const std::byte* const v = k + bytes_of(heads * a.keys * a.head_dim, a.dtype);
    std::byte* const out = written_.data() + bytes_of(heads * a.queries * a.keys, a.dtype);
    const auto rows = static_cast<std::size_t>(heads * a.queries);
    const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(a.head_dim)));
    for (std::int64_t i = 0; i < runs; ++i) {
      products_.of(scores).enqueue(stream_, 0, read_.data(), k, written_.data());
      cuda::causal_softmax(stream_, written_.data(), rows, static_cast<std::size_t>(a.keys),
                           factor);
      products_.of(sums, Weights::by_inputs).enqueue(stream_, 0, written_.data(), v, out);
    }
  }

  void enqueue(const Elementwise& e) const {
    for (const std::int64_t elements : triads_of(e)) {
      const auto n = static_cast<std::size_t>(elements);
      const auto* const b = read_.as<float>();
      const auto* const c =
          reinterpret_cast<const float*>(read_.data() + bytes_of(elements, DType::fp32));
      cuda::triad(stream_, b, c, 0.5F, written_.as<float>(), n);
    }
  }
};

// The mutex is held where CUDA may wait for the GPU, as when memory is mapped.
class CudaDevice final : public Device {
 public:
  CudaDevice(const cuda::GpuFacts& gpu, LaunchMutex launch)
      : index_(prepared(gpu.index)), name_(gpu.name), pool_(index_), launch_(std::move(launch)) {}

  std::string name() const override { return name_; }
  std::byte* allocate(std::int64_t bytes) override {
    const std::lock_guard turn(*launch_);
    return pool_.allocate(static_cast<std::size_t>(bytes));
  }
  void free(std::byte* at) override { pool_.free(at); }
  std::byte* allocate_lasting(std::int64_t bytes) override {
    const std::lock_guard turn(*launch_);
    lasting_.emplace_back(index_, static_cast<std::size_t>(bytes));
    return lasting_.back().data();
  }
  void free_lasting(std::byte* at) override {
    const std::lock_guard turn(*launch_);
    std::erase_if(lasting_, [at](const cuda::DeviceBuffer& b) { return b.data() == at; });
  }
  void pin(std::span<std::byte> pages) override {
    const std::lock_guard turn(*launch_);
    cuda::pin_pages(pages.data(), pages.size());
  }
  void unpin(std::span<std::byte> pages) override {
    const std::lock_guard turn(*launch_);
    cuda::unpin_pages(pages.data());
  }
  bool admit(std::uint16_t other) override {
    const std::lock_guard turn(*launch_);
    if (!cuda::can_access(other, index_)) return false;
    cuda::enable_access(other, index_);
    pool_.admit(other);
    return true;
  }
  std::unique_ptr<DeviceSeat> sit_down(std::span<const Kernel> kernels) override {
    const std::lock_guard turn(*launch_);
    return std::make_unique<CudaSeat>(index_, kernels);
  }

 private:
  static int prepared(int device) {
    cuda::sleep_while_waiting(device);
    return device;
  }

  int index_;
  std::string name_;
  cuda::MemoryPool pool_;
  LaunchMutex launch_;
  std::vector<cuda::DeviceBuffer> lasting_;
};

}  // namespace

Devices cuda_devices() {
  if (const std::string why = cuda::why_no_gpu(); !why.empty()) {
    throw MachineError(why);
  }
  const auto launch = std::make_shared<std::mutex>();
  Devices devices{.each = {}, .teams = cuda_teams(launch), .files = cuda_files()};
  for (const cuda::GpuFacts& gpu : cuda::gpu_facts())
    devices.each.push_back(std::make_shared<CudaDevice>(gpu, launch));
  return devices;
}

}  // namespace tidegate
