#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "validate/engine/worker.hpp"

/// What the processes of a run say to each other.
namespace tidegate {

/// One end of a pair of connected sockets. Move-only; closed when it goes.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      close();
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }

  int descriptor() const { return descriptor_; }
  void close();

  /// Whole or not at all; false when the other end is gone.
  bool send(std::span<const std::byte> bytes) const;
  bool receive(std::span<std::byte> bytes) const;
  /// With a copy of a descriptor, or none (-1).
  bool send(std::span<const std::byte> bytes, int descriptor) const;
  bool receive(std::span<std::byte> bytes, int& descriptor) const;

 private:
  int descriptor_ = -1;
};
/// Throws MachineError.
std::pair<Socket, Socket> connected_sockets();

struct Command {
  enum class Kind : std::uint8_t { sit, run, pass, forget, results };
  Kind kind = Kind::run;
  TaskId task{};
  BufferId buffer{};
  Seat seat;
  Clock::time_point start;
};
bool send(const Socket& socket, const Command& command, int descriptor = -1);
bool receive(const Socket& socket, Command& command, int& descriptor);

/// Over at `due`, or what went wrong.
struct WorkResult {
  enum class Kind : std::uint8_t { done, input_error, machine_error, interrupted, bug };
  Kind kind = Kind::done;
  Clock::time_point due;
  std::string text;
};
bool send(const Socket& socket, const WorkResult& answer);
bool receive(const Socket& socket, WorkResult& answer);
/// Of the exception under way.
WorkResult failure();
/// Throws what the answer says went wrong.
void rethrow(const WorkResult& answer);

bool send(const Socket& socket, const std::vector<std::byte>& bytes);
bool receive(const Socket& socket, std::vector<std::byte>& bytes);

}  // namespace tidegate
