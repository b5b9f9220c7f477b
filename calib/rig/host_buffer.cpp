#include "calib/rig/host_buffer.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate::rig {
namespace {

constexpr std::size_t page = 4096;

}  // namespace

HostBuffer::HostBuffer(std::size_t bytes, Pages pages) {
  if (bytes == 0) return;
  constexpr int access = PROT_READ | PROT_WRITE;
  void* at = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    throw MachineError(fmt::format("mmap of {} bytes: {}", bytes, std::strerror(errno)));
  }
  data_ = static_cast<std::byte*>(at);
  size_ = bytes;
  // Advice may be refused; the buffer is as good with small pages.
  madvise(at, bytes, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (std::size_t i = 0; i < bytes; i += page) data_[i] = std::byte{1};
}

HostBuffer::~HostBuffer() {
  if (data_ != nullptr) munmap(data_, size_);
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tidegate::rig
