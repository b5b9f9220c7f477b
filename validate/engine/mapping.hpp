#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tidegate {

/// A range of addresses without pages: the system gives a page of zeros when it is first written,
/// and it stays. Move-only; unmapped when it goes.
class Mapping {
 public:
  /// Shared ones are the same memory, at the same addresses, in processes that fork later.
  enum class Sharing : std::uint8_t { own, shared };

  Mapping() = default;
  /// Throws MachineError that begins with `what` when the system gives no addresses.
  Mapping(std::size_t bytes, Sharing sharing, const std::string& what);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace tidegate
