#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "calib/cuda/shim/handles.hpp"
#include "calib/cuda/station.hpp"
#include "calib/rig/host_buffer.hpp"

/// Both ends of copies between host and GPU, and the proof that bytes have arrived.
namespace tidegate::cuda {

enum class HostMemory { pageable, pinned };
enum class Way { h2d, d2h };

/// Sources hold word(i, seed) throughout; targets are wiped before and checked after a sample. Host
/// memory is first touched on CPUs near the GPU. A copy of `bytes` takes the next of up to 64
/// places in turn, so that small ones do not all meet the same cache lines.
class CopyBuffers {
 public:
  CopyBuffers(Station& station, std::size_t bytes, HostMemory memory, std::uint32_t seed);

  std::size_t size() const { return device_source_.size(); }
  /// Where copy i of `bytes` begins, at both ends.
  std::size_t place(int i, std::size_t bytes) const;
  const void* source(Way way, std::size_t offset) const;
  void* target(Way way, std::size_t offset) const;

  /// Whatever the first `copies` copies of `bytes` will write becomes wrong.
  void wipe(Station& station, Way way, std::size_t bytes);
  /// Whether it is right. On the GPU all words are compared, on the host one of each 4 KiB and the
  /// last of each place.
  bool has_arrived(Station& station, Way way, std::size_t bytes, int copies) const;

 private:
  std::byte* host(bool is_target) const;
  std::size_t places(std::size_t bytes) const;
  std::vector<std::size_t> checked_words(std::size_t bytes, std::size_t places) const;

  std::uint32_t seed_;
  PinnedBuffer pinned_source_, pinned_target_;
  rig::HostBuffer pageable_source_, pageable_target_;
  DeviceBuffer device_source_, device_target_;
};

/// Enqueues one copy on the station's stream, by a copy engine.
void copy_once(const Stream& stream, const CopyBuffers& buffers, Way way, std::size_t bytes, int i);

/// The largest of `sizes` that host memory has room for: at most a twentieth of what is available
/// (everything where that is not told).
std::vector<std::int64_t> that_fit(std::vector<std::int64_t> sizes, Bytes available);

}  // namespace tidegate::cuda
