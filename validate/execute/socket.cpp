#include "validate/execute/socket.hpp"

#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"

namespace tidegate {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> room_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

struct AnswerHead {
  WorkResult::Kind kind;
  Clock::time_point due;
  std::size_t length;
};

}  // namespace

void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

bool Socket::send(std::span<const std::byte> bytes) const { return send(bytes, -1); }

bool Socket::receive(std::span<std::byte> bytes) const {
  int none = -1;
  return receive(bytes, none);
}

bool Socket::send(std::span<const std::byte> bytes, int descriptor) const {
  while (!bytes.empty()) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof descriptor)] = {};
    if (descriptor >= 0) {
      message.msg_control = space;
      message.msg_controllen = sizeof space;
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof descriptor);
      std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    }
    const ssize_t sent = sendmsg(descriptor_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
    descriptor = -1;
  }
  return true;
}

bool Socket::receive(std::span<std::byte> bytes, int& descriptor) const {
  while (!bytes.empty()) {
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof descriptor)] = {};
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    const ssize_t received = recvmsg(descriptor_, &message, MSG_CMSG_CLOEXEC);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return false;
    const cmsghdr* const head = CMSG_FIRSTHDR(&message);
    if (head != nullptr && head->cmsg_type == SCM_RIGHTS)
      std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return true;
}

std::pair<Socket, Socket> connected_sockets() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw MachineError(fmt::format("socketpair failed: {}", std::strerror(errno)));
  return {Socket(ends[0]), Socket(ends[1])};
}

bool send(const Socket& socket, const Command& command, int descriptor) {
  return socket.send(bytes_of(command), descriptor);
}

bool receive(const Socket& socket, Command& command, int& descriptor) {
  return socket.receive(room_of(command), descriptor);
}

bool send(const Socket& socket, const WorkResult& answer) {
  const AnswerHead head{answer.kind, answer.due, answer.text.size()};
  return socket.send(bytes_of(head)) && socket.send(std::as_bytes(std::span(answer.text)));
}

bool receive(const Socket& socket, WorkResult& answer) {
  AnswerHead head;
  if (!socket.receive(room_of(head))) return false;
  answer = {head.kind, head.due, std::string(head.length, ' ')};
  return socket.receive(std::as_writable_bytes(std::span(answer.text)));
}

bool send(const Socket& socket, const std::vector<std::byte>& bytes) {
  const std::size_t size = bytes.size();
  return socket.send(bytes_of(size)) && socket.send(bytes);
}

bool receive(const Socket& socket, std::vector<std::byte>& bytes) {
  std::size_t size = 0;
  if (!socket.receive(room_of(size))) return false;
  bytes.resize(size);
  return socket.receive(bytes);
}

WorkResult failure() {
  try {
    throw;
  } catch (const rig::Interrupted& error) {
    return {WorkResult::Kind::interrupted, {}, error.what()};
  } catch (const InputError& error) {
    return {WorkResult::Kind::input_error, {}, error.what()};
  } catch (const MachineError& error) {
    return {WorkResult::Kind::machine_error, {}, error.what()};
  } catch (const std::exception& error) {
    return {WorkResult::Kind::bug, {}, error.what()};
  }
}

void rethrow(const WorkResult& answer) {
  switch (answer.kind) {
    case WorkResult::Kind::done:
      return;
    case WorkResult::Kind::input_error:
      throw InputError(answer.text);
    case WorkResult::Kind::machine_error:
      throw MachineError(answer.text);
    case WorkResult::Kind::interrupted:
      throw rig::Interrupted(answer.text);
    case WorkResult::Kind::bug:
      throw std::logic_error(answer.text);
  }
}

}  // namespace tidegate
