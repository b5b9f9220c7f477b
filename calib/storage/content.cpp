#include "calib/storage/content.hpp"

#include <algorithm>
#include <cstring>

#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ULL;

}  // namespace

std::uint64_t mixed(std::uint64_t state) {
  std::uint64_t z = state + golden;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

Content::Content(std::uint64_t seed) : seed_(mixed(seed)), pattern_(period) {
  std::uint64_t state = seed_;
  for (std::size_t i = 0; i < period; i += sizeof(state), state += golden) {
    const std::uint64_t word = mixed(state);
    std::memcpy(pattern_.data() + i, &word, sizeof(word));
  }
}

std::uint64_t Content::key(std::int64_t position) const {
  return mixed(seed_ ^ mixed(static_cast<std::uint64_t>(position) / block));
}

void Content::fill(std::span<std::byte> bytes, std::int64_t position) const {
  ensure(static_cast<std::size_t>(position) % block == 0 && bytes.size() % block == 0,
         "content is of whole blocks");
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t from = (static_cast<std::size_t>(position) + done) % period;
    const std::size_t length = std::min(period - from, bytes.size() - done);
    std::memcpy(bytes.data() + done, pattern_.data() + from, length);
    done += length;
  }
  restamp(bytes, position);
}

void Content::restamp(std::span<std::byte> bytes, std::int64_t position) const {
  for (std::size_t done = 0; done < bytes.size(); done += block) {
    const std::uint64_t word = key(position + static_cast<std::int64_t>(done));
    std::memcpy(bytes.data() + done, &word, sizeof(word));
  }
}

std::int64_t Content::wrong_blocks(std::span<const std::byte> bytes, std::int64_t position) const {
  std::int64_t wrong = 0;
  std::vector<std::byte> right(block);
  for (std::size_t done = 0; done + block <= bytes.size(); done += block) {
    fill(right, position + static_cast<std::int64_t>(done));
    wrong += std::memcmp(right.data(), bytes.data() + done, block) != 0;
  }
  return wrong;
}

}  // namespace tidegate::calib
