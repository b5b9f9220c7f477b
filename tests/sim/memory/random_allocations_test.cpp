#include <map>
#include <random>

#include "sim/memory/caching_allocator.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

constexpr std::int64_t MiB = 1 << 20;

// Blocks in use as the test knows them: address to end.
class Occupied {
 public:
  bool add(CachingAllocator::Extent e) {
    const auto after = used_.lower_bound(e.address);
    if (after != used_.end() && after->first < e.address + e.bytes) return false;
    if (after != used_.begin() && std::prev(after)->second > e.address) return false;
    used_[e.address] = e.address + e.bytes;
    return true;
  }
  void remove(CachingAllocator::Extent e) { used_.erase(e.address); }

 private:
  std::map<std::int64_t, std::int64_t> used_;
};

struct Live {
  CachingAllocator::BlockId block{};
  std::int64_t asked = 0;
};

// Sizes of all pools: bytes, kilobytes, megabytes, tens of megabytes.
std::int64_t some_size(std::mt19937_64& random) {
  constexpr std::int64_t most[] = {2000, 2 * MiB, 16 * MiB, 96 * MiB};
  return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most[random() % 4]));
}

struct Played {
  int refused = 0;
  std::int64_t retries = 0;
};

Played play(const AllocatorOptions& options, std::uint64_t seed) {
  constexpr std::int64_t capacity = 1024 * MiB;
  CachingAllocator gpu(capacity, options);
  std::mt19937_64 random(seed);
  Occupied occupied;
  std::vector<Live> live;
  std::int64_t asked = 0;
  Played played;
  bool is_lawful = true;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 100 < 52) {
      const std::int64_t bytes = some_size(random);
      const auto block = gpu.allocate(bytes, static_cast<std::uint32_t>(random() % 3));
      if (block) {
        is_lawful &= gpu.extent(*block).bytes >= CachingAllocator::rounded(bytes);
        is_lawful &= occupied.add(gpu.extent(*block));
        live.push_back({*block, CachingAllocator::rounded(bytes)});
        asked += live.back().asked;
      } else {
        ++played.refused;
        // What was refused does not fit beside what is reserved.
        is_lawful &= gpu.reserved() + CachingAllocator::rounded(bytes) + 20 * MiB > capacity;
      }
    } else {
      std::swap(live[random() % live.size()], live.back());
      occupied.remove(gpu.extent(live.back().block));
      gpu.free(live.back().block);
      asked -= live.back().asked;
      live.pop_back();
    }
    if (i % 5000 == 4999) gpu.empty_cache();
    is_lawful &= asked <= gpu.allocated() && gpu.allocated() <= gpu.reserved();
    is_lawful &= gpu.reserved() <= capacity;
    if (!is_lawful) break;
  }
  CHECK(is_lawful);
  for (const Live& l : live) gpu.free(l.block);
  CHECK(gpu.allocated() == 0);
  gpu.empty_cache();
  CHECK(gpu.reserved() == 0);
  played.retries = gpu.retries();
  return played;
}

}  // namespace

TEST_CASE("whatever comes, blocks do not overlap and reserved bytes are within bounds",
          "[allocator]") {
  AllocatorOptions growing, limited;
  growing.expandable_segments = true;
  limited.max_split_size = 40 * MiB;
  int refused = 0;
  std::int64_t retries = 0;
  for (const AllocatorOptions& options : {AllocatorOptions{}, growing, limited}) {
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const Played played = play(options, seed);
      refused += played.refused;
      retries += played.retries;
    }
  }
  // The sequences do fill the device: else the laws above would say little.
  CHECK(refused > 100);
  CHECK(retries > refused);
}
