#include "validate/engine/mapping.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <sys/mman.h>

#include "models/base/error.hpp"

namespace tidegate {

Mapping::Mapping(std::size_t bytes, Sharing sharing, const std::string& what) {
  const int kind = sharing == Sharing::shared ? MAP_SHARED : MAP_PRIVATE;
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    throw MachineError(fmt::format("{}: mmap of {} bytes of addresses failed: {}", what, bytes,
                                   std::strerror(errno)));
  }
  bytes_ = {static_cast<std::byte*>(base), bytes};
}

Mapping::~Mapping() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace tidegate
