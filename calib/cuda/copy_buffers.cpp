#include "calib/cuda/copy_buffers.hpp"

#include <algorithm>

#include "calib/cuda/kernels.hpp"
#include "calib/cuda/values.hpp"

namespace tidegate::cuda {
namespace {

constexpr std::size_t most_places = 64;
constexpr std::size_t words_per_page = 1024;

std::uint32_t* words(void* at) { return static_cast<std::uint32_t*>(at); }

}  // namespace

CopyBuffers::CopyBuffers(Station& station, std::size_t bytes, HostMemory memory, std::uint32_t seed)
    : seed_(seed) {
  const GpuFacts& gpu = station.gpu();
  const OnDevice here(gpu.index);
  {
    const NearGpu near(gpu);
    if (memory == HostMemory::pinned) {
      pinned_source_ = PinnedBuffer(bytes);
      pinned_target_ = PinnedBuffer(bytes);
    } else {
      pageable_source_ = rig::HostBuffer(bytes);
      pageable_target_ = rig::HostBuffer(bytes);
    }
    std::uint32_t* source = words(host(false));
    for (std::size_t i = 0; i < bytes / 4; ++i) source[i] = word(i, seed_);
  }
  device_source_ = DeviceBuffer(gpu.index, bytes);
  device_target_ = DeviceBuffer(gpu.index, bytes);
  fill_words(station.stream(), words(device_source_.data()), bytes / 4, seed_);
  station.stream().wait();
}

std::byte* CopyBuffers::host(bool is_target) const {
  if (pinned_source_.data() != nullptr) {
    return is_target ? pinned_target_.data() : pinned_source_.data();
  }
  return is_target ? pageable_target_.data() : pageable_source_.data();
}

std::size_t CopyBuffers::places(std::size_t bytes) const {
  return std::clamp<std::size_t>(size() / bytes, 1, most_places);
}

std::size_t CopyBuffers::place(int i, std::size_t bytes) const {
  return static_cast<std::size_t>(i) % places(bytes) * bytes;
}

const void* CopyBuffers::source(Way way, std::size_t offset) const {
  return (way == Way::h2d ? host(false) : device_source_.data()) + offset;
}

void* CopyBuffers::target(Way way, std::size_t offset) const {
  return (way == Way::h2d ? device_target_.data() : host(true)) + offset;
}

std::vector<std::size_t> CopyBuffers::checked_words(std::size_t bytes, std::size_t places) const {
  std::vector<std::size_t> all;
  const std::size_t words = bytes / 4;
  for (std::size_t p = 0; p < places; ++p) {
    for (std::size_t i = 0; i < words; i += words_per_page) all.push_back(p * words + i);
    all.push_back((p + 1) * words - 1);
  }
  return all;
}

void CopyBuffers::wipe(Station& station, Way way, std::size_t bytes) {
  const std::size_t all = places(bytes);
  if (way == Way::h2d) {
    const OnDevice here(station.gpu().index);
    set_bytes(station.stream(), device_target_.data(), 0, all * bytes);
    station.stream().wait();
    return;
  }
  std::uint32_t* target = words(host(true));
  for (const std::size_t i : checked_words(bytes, all)) target[i] = ~word(i, seed_);
}

bool CopyBuffers::has_arrived(Station& station, Way way, std::size_t bytes, int copies) const {
  const std::size_t all = std::min(places(bytes), static_cast<std::size_t>(copies));
  if (way == Way::h2d) {
    return station.faults([&](unsigned long long* count) {
      count_wrong_words(station.stream(), words(device_target_.data()), all * bytes / 4, seed_,
                        count);
    }) == 0;
  }
  const std::uint32_t* target = words(host(true));
  return std::ranges::all_of(checked_words(bytes, all),
                             [&](std::size_t i) { return target[i] == word(i, seed_); });
}

void copy_once(const Stream& stream, const CopyBuffers& buffers, Way way, std::size_t bytes,
               int i) {
  const std::size_t offset = buffers.place(i, bytes);
  copy(stream, buffers.target(way, offset), buffers.source(way, offset), bytes);
}

std::vector<std::int64_t> that_fit(std::vector<std::int64_t> sizes, Bytes available) {
  if (available <= Bytes(0)) return sizes;
  std::erase_if(
      sizes, [&](std::int64_t size) { return static_cast<double>(size) > available.value() / 20; });
  return sizes;
}

}  // namespace tidegate::cuda
