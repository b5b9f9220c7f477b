#include <csignal>

#include <unistd.h>

#include "calib/rig/interrupt.hpp"
#include "calib/storage/stream.hpp"
#include "models/base/error.hpp"
#include "tests/calib/storage/made_up.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

constexpr std::int64_t kib = 1 << 10, mib = 1 << 20;

Target prepared(std::int32_t files = 1) {
  const Setup setup = small_setup();
  Target target(setup.storage[0], setup, files);
  target.prepare();
  return target;
}

/// Blocks of the target's first file that are not what they should be, read outside the stream.
std::int64_t wrong_blocks(const Target& target) {
  rig::HostBuffer bytes(static_cast<std::size_t>(target.file_size()));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t moved = pread(target.files()[0].descriptor(), bytes.data() + done,
                                bytes.size() - done, static_cast<off_t>(done));
    REQUIRE(moved > 0);
    done += static_cast<std::size_t>(moved);
  }
  return target.content().wrong_blocks(bytes.bytes(), 0);
}

}  // namespace

TEST_CASE("a prepared target is written in full, with its content and nothing else", "[storage]") {
  const Target target = prepared();
  CHECK(target.file_size() == 16 * mib);
  CHECK(rig::unwritten_bytes(target.files()[0], 16 * mib) <= 0);  // -1: the file system cannot say
  CHECK(wrong_blocks(target) == 0);
  CHECK(target.write_rate().value() > 0);
  // 16 MiB to fill and 16 MiB to see the rate.
  CHECK(target.written() == 32 * mib);
}

TEST_CASE("a stream moves what it was told, whatever block, depth, order and files", "[storage]") {
  Target target = prepared(2);
  CHECK(target.file_size() == 8 * mib);
  for (const Direction direction : {Direction::write, Direction::read}) {
    for (const Order order : {Order::sequential, Order::random}) {
      for (const std::int64_t block : {4 * kib, 128 * kib, mib, 4 * mib}) {
        CAPTURE(block, static_cast<int>(order), static_cast<int>(direction));
        const StreamPlan plan{.direction = direction,
                              .block = block,
                              .depth = 4,
                              .files = 2,
                              .order = order,
                              .most_bytes = 8 * mib + 1};
        const StreamResult result = stream(target, plan);
        // Whole blocks only: the odd byte is left out.
        CHECK(result.bytes == 8 * mib);
        CHECK(static_cast<std::int64_t>(result.latencies.size()) == 8 * mib / block);
        CHECK(result.wrong_blocks == 0);
        CHECK(result.rate() > 0);
      }
    }
  }
  CHECK(wrong_blocks(target) == 0);
}

TEST_CASE("a sequential stream goes on where the last one stopped", "[storage]") {
  Target target = prepared();
  target.cursor(Direction::read) = 0;
  const StreamPlan plan{.depth = 2, .most_bytes = 10 * mib};
  stream(target, plan);
  CHECK(target.cursor(Direction::read) == 10 * mib);
  stream(target, plan);
  CHECK(target.cursor(Direction::read) == 4 * mib);  // 20 - 16: round the end
}

TEST_CASE("content that is not ours is noticed", "[storage]") {
  Target target = prepared();
  const rig::HostBuffer zeros(4096);
  REQUIRE(pwrite(target.files()[0].descriptor(), zeros.data(), 4096, 3 * mib) == 4096);
  target.cursor(Direction::read) = 0;
  const StreamPlan plan{.depth = 4, .most_bytes = 4 * mib};
  CHECK(stream(target, plan).wrong_blocks == 1);
  CHECK(stream(target, plan).wrong_blocks == 0);  // the next four MiB
}

TEST_CASE("a paced stream starts no block before its time", "[storage]") {
  Target target = prepared();
  // 8 blocks of 1 MiB at 80 MiB/s: the last starts after 7/80 s.
  const StreamPlan plan{.direction = Direction::write,
                        .depth = 4,
                        .most_bytes = 8 * mib,
                        .rate = BytesPerSecond(80. * mib)};
  const StreamResult result = stream(target, plan);
  CHECK(result.bytes == 8 * mib);
  CHECK(result.elapsed.value() >= 7.0 / 80);
}

TEST_CASE("a stream ends with its time", "[storage]") {
  Target target = prepared();
  const StreamPlan plan{.most_time = Seconds(0.02)};
  const StreamResult result = stream(target, plan);
  CHECK(result.bytes > 0);
  CHECK(result.elapsed.value() >= 0.02);
}

TEST_CASE("the series holds all that was moved", "[storage]") {
  StreamResult result;
  result.block = 1000;
  // Ten completions in the first second, thirty in the second: 10000 and 30000 bytes per second.
  for (int i = 1; i <= 10; ++i) result.at.push_back(0.1 * i - 0.05);
  for (int i = 1; i <= 30; ++i) result.at.push_back(1 + i / 30.0);
  const auto series = result.series(2);
  REQUIRE(series.size() == 2);
  CHECK(series[0] == Approx(10000));
  CHECK(series[1] == Approx(30000));
  CHECK(result.series(5).empty());  // 40 completions are fewer than ten for each part
}

TEST_CASE("nothing is written beyond the budget", "[storage]") {
  Setup setup = small_setup();
  setup.write_budget = Bytes(36. * mib);
  Target target(setup.storage[0], setup, 1);
  target.prepare();  // 32 MiB
  const StreamPlan plan{.direction = Direction::write, .most_bytes = 5 * mib};
  CHECK_THROWS_WITH(stream(target, plan), Containing("disk0: the write budget of 36 MiB"));
  CHECK(target.written() == 36 * mib);
}

TEST_CASE("a signal ends a stream with nothing under way", "[storage]") {
  Target target = prepared();
  const rig::InterruptScope scope;
  std::raise(SIGINT);
  CHECK_THROWS_AS(stream(target, {}), rig::Interrupted);
}

TEST_CASE("a file system that fails says where", "[storage]") {
  Target target = prepared();
  rig::ScratchFile closed = target.fresh_file();
  const rig::ScratchFile taken(std::move(closed));
  const StreamPlan plan{.other = &closed, .size = 4 * mib};  // NOLINT: no descriptor any more
  CHECK_THROWS_WITH(stream(target, plan), Containing("read in") && Containing("Bad file"));
}
