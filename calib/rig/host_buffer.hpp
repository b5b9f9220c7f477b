#pragma once

#include <cstddef>
#include <span>

namespace tidegate::rig {

/// Host memory of whole pages, mapped for this purpose alone and written once, so that every page
/// exists. Move-only; unmapped when it goes. Throws MachineError when the system gives no memory.
class HostBuffer {
 public:
  enum class Pages {
    usual,
    huge
  };  ///< huge: asks for 2 MiB pages (madvise), where the system has them
  HostBuffer() = default;
  explicit HostBuffer(std::size_t bytes, Pages pages = Pages::usual);
  ~HostBuffer();
  HostBuffer(HostBuffer&& other) noexcept;
  HostBuffer& operator=(HostBuffer&& other) noexcept;

  std::size_t size() const { return size_; }
  std::byte* data() const { return data_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tidegate::rig
