#include "calib/rig/io_queue.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <unistd.h>

#include <fmt/core.h>

#include "calib/rig/io_transfer.hpp"
#include "models/base/error.hpp"

namespace tidegate::rig {

std::unique_ptr<IoQueue> make_io_queue(const IoOptions& options) {
  ensure(options.depth >= 1 && options.depth <= 1024, "a queue is 1 to 1024 deep");
  std::string why_not;
  if (options.engine != IoEngine::threads) {
    if (auto ring = detail::make_ring(options, why_not)) return ring;
    if (options.engine == IoEngine::io_uring) throw MachineError(why_not);
  }
  return detail::make_threads(options, why_not);
}

void transfer(IoQueue& queue, Direction direction, int descriptor, std::int64_t offset,
              std::span<std::byte> bytes, std::size_t block) {
  ensure(block > 0, "a block has bytes");
  ensure(queue.in_flight() == 0, "nothing else is in flight during a transfer");
  std::optional<IoCompletion> failed;
  const auto look = [&](const std::vector<IoCompletion>& completions) {
    const auto hit = std::ranges::find_if(completions, &IoCompletion::error);
    if (hit != completions.end() && !failed) failed = *hit;
  };
  for (std::size_t at = 0; at < bytes.size() && !failed; at += block) {
    const auto part = bytes.subspan(at, std::min(block, bytes.size() - at));
    const auto place = offset + static_cast<std::int64_t>(at);
    queue.submit({direction, descriptor, place, part, static_cast<std::uint64_t>(place)});
    look(queue.reap(0));
  }
  while (queue.in_flight() > 0) look(queue.reap(1));
  if (!failed) return;
  throw MachineError(fmt::format("{} of {} at offset {}: {}",
                                 direction == Direction::read ? "read" : "write",
                                 path_of(descriptor), failed->tag, std::strerror(failed->error)));
}

std::string path_of(int descriptor) {
  std::array<char, 4096> path{};
  const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  if (length < 0) return fmt::format("descriptor {}", descriptor);
  return std::string(path.data(), static_cast<std::size_t>(length));
}

}  // namespace tidegate::rig
