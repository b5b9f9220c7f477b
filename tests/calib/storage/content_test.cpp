#include <algorithm>
#include <set>

#include "calib/storage/content.hpp"
#include "tests/catch.hpp"

using namespace tidegate::calib;

namespace {

std::vector<std::byte> filled(const Content& content, std::size_t size, std::int64_t position) {
  std::vector<std::byte> bytes(size);
  content.fill(bytes, position);
  return bytes;
}

}  // namespace

TEST_CASE("content depends on seed and position only, however it is cut", "[storage]") {
  const Content content(7), same(7), other(8);
  const auto whole = filled(content, 3 * Content::period, 0);
  const auto part = filled(same, 5 * Content::block, 9 * Content::block);
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + 9 * Content::block));
  CHECK(filled(other, 4096, 0) != filled(content, 4096, 0));
}

TEST_CASE("no two blocks are equal, though the pattern repeats", "[storage]") {
  const Content content(7);
  const auto bytes = filled(content, 4 * Content::period, 0);
  std::set<std::vector<std::byte>> blocks;
  for (std::size_t at = 0; at < bytes.size(); at += Content::block) {
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    blocks.emplace(from, from + Content::block);
  }
  CHECK(blocks.size() == 1024);  // 4 MiB / 4 KiB
}

TEST_CASE("every byte value occurs about equally often", "[storage]") {
  const Content content(7);
  std::vector<double> counts(256, 0);
  for (const std::byte b : filled(content, Content::period, 0))
    ++counts[std::to_integer<std::size_t>(b)];
  // 2^20 / 256 = 4096 each, standard deviation 64; five of them for the worst of 256.
  CHECK(*std::ranges::max_element(counts) < 4096 + 5 * 64);
  CHECK(*std::ranges::min_element(counts) > 4096 - 5 * 64);
}

TEST_CASE("memory of one position becomes another by its stamps", "[storage]") {
  const Content content(7);
  auto bytes = filled(content, 8 * Content::block, 0);
  const auto position = static_cast<std::int64_t>(5 * Content::period);
  content.restamp(bytes, position);
  CHECK(bytes == filled(content, 8 * Content::block, position));
}

TEST_CASE("each wrong block is counted: a bit, zeros, another position", "[storage]") {
  const Content content(7);
  auto bytes = filled(content, 8 * Content::block, 4096);
  CHECK(content.wrong_blocks(bytes, 4096) == 0);
  CHECK(content.wrong_blocks(bytes, 8192) == 8);
  bytes[3 * Content::block + 100] ^= std::byte{1};
  CHECK(content.wrong_blocks(bytes, 4096) == 1);
  std::fill_n(bytes.begin(), 2 * Content::block, std::byte{0});
  CHECK(content.wrong_blocks(bytes, 4096) == 3);
}
