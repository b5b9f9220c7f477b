#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calib/cuda/shim/product.hpp"
#include "validate/train/backend.hpp"
#include "validate/train/kernels/kernel.hpp"

namespace tidegate::train {

/// What runs kernels and products on memory of its own: a GPU, or, in tests, the host. Works are
/// done in the order in which one thread asks for them.
class KernelDevice : public RemoteMemory {
 public:
  virtual std::string name() const = 0;
  virtual std::string products_text(DType type) const = 0;
  virtual void launch(const kernels::Kernel& kernel, std::int64_t count) = 0;
  virtual void multiply(const cuda::Product& product, const void* a, const void* b, float* c) = 0;
};

/// Numbers in a device's memory, gone with this. Not to be moved.
template <class T>
class DeviceArray {
 public:
  DeviceArray(RemoteMemory& device, std::size_t count)
      : device_(device),
        count_(count),
        at_(count == 0 ? nullptr : device.allocate(static_cast<std::int64_t>(count * sizeof(T)))) {}
  DeviceArray(RemoteMemory& device, std::span<const T> from) : DeviceArray(device, from.size()) {
    if (count_ > 0) device_.put(std::as_bytes(from), at_);
  }
  ~DeviceArray() {
    if (at_ != nullptr) device_.free(at_);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* at() const { return reinterpret_cast<T*>(at_); }  ///< null when empty
  void get(std::span<T> to) const {
    if (count_ > 0) device_.get(at_, std::as_writable_bytes(to));
  }
  std::vector<T> get() const {
    std::vector<T> all(count_);
    get(all);
    return all;
  }

 private:
  RemoteMemory& device_;
  std::size_t count_;
  std::byte* at_;
};

}  // namespace tidegate::train
