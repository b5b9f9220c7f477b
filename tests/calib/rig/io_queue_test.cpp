#include <cerrno>
#include <cstring>
#include <thread>

#include "calib/rig/file.hpp"
#include "calib/rig/host_buffer.hpp"
#include "calib/rig/io_queue.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::rig;

namespace {

constexpr std::size_t page = 4096;
const std::string folder = TIDEGATE_BINARY_DIR;

/// The engines that this machine has; says so when io_uring is not among them.
std::vector<IoEngine> engines() {
  try {
    make_io_queue({.engine = IoEngine::io_uring});
    return {IoEngine::io_uring, IoEngine::threads};
  } catch (const MachineError& error) {
    WARN("SKIPPED for io_uring: " << error.what());
    return {IoEngine::threads};
  }
}

/// Where the build lies on a memory file system, direct access is not to be had.
Access access_here() {
  return why_no_direct_access(folder).empty() ? Access::direct : Access::buffered;
}

/// Byte i of a pattern that repeats nowhere within a block.
std::byte pattern(std::size_t i) { return static_cast<std::byte>((i * 2654435761U) >> 13U); }

HostBuffer patterned(std::size_t size) {
  HostBuffer buffer(size);
  for (std::size_t i = 0; i < size; ++i) buffer.data()[i] = pattern(i);
  return buffer;
}

std::size_t first_difference(const HostBuffer& a, const HostBuffer& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a.data()[i] != b.data()[i]) return i;
  }
  return a.size();
}

IoOptions with(IoEngine engine, IoFault fault) { return {.engine = engine, .faults = {fault}}; }

}  // namespace

TEST_CASE("what was written is read back, whatever the engine, block and depth", "[rig]") {
  struct Case {
    std::size_t bytes, block, depth;
    Access access;
  };
  const Access best = access_here();
  for (const Case& c : {Case{64 * page, page, 1, best}, Case{64 * page, 4 * page, 16, best},
                        Case{61 * page, 8 * page, 4, best}, Case{page, 16 * page, 8, best},
                        Case{1 << 23, 1 << 20, 64, best}, Case{100001, 777, 3, Access::buffered},
                        Case{1, 4096, 1, Access::buffered}}) {
    for (const IoEngine engine : engines()) {
      CAPTURE(c.bytes, c.block, c.depth, static_cast<int>(engine));
      const ScratchFile file(folder, c.access);
      HostBuffer out = patterned(c.bytes), in(c.bytes);
      const auto queue = make_io_queue({.depth = c.depth, .engine = engine});
      transfer(*queue, Direction::write, file.descriptor(), 8192, out.bytes(), c.block);
      transfer(*queue, Direction::read, file.descriptor(), 8192, in.bytes(), c.block);
      CHECK(first_difference(out, in) == c.bytes);
      CHECK(queue->in_flight() == 0);
    }
  }
}

TEST_CASE("each request comes back once, with its tag and its instants in order", "[rig]") {
  for (const IoEngine engine : engines()) {
    const ScratchFile file(folder, Access::buffered);
    HostBuffer bytes = patterned(40 * page);
    const auto queue = make_io_queue({.depth = 3, .engine = engine});
    std::vector<int> seen(40, 0);
    const auto look = [&](const std::vector<IoCompletion>& completions) {
      for (const IoCompletion& c : completions) {
        ++seen.at(c.tag);
        CHECK(c.error == 0);
        CHECK(c.submitted <= c.completed);
      }
    };
    for (std::size_t i = 0; i < 40; ++i) {
      queue->submit({Direction::write, file.descriptor(), static_cast<std::int64_t>(i * page),
                     bytes.bytes().subspan(i * page, page), i});
    }
    // Nothing was reaped: all forty are in flight, of which at most three are under way.
    CHECK(queue->in_flight() == 40);
    look(queue->reap(10));
    while (queue->in_flight() > 0) look(queue->reap(1));
    CHECK(seen == std::vector<int>(40, 1));
    CHECK(queue->reap(1).empty());
  }
}

TEST_CASE("an injected error names file, offset and reason", "[rig]") {
  for (const IoEngine engine : engines()) {
    const ScratchFile file(folder, Access::buffered);
    HostBuffer bytes(8 * page);
    // The third block of two pages begins at 2 · 8192 = 16384.
    const auto queue =
        make_io_queue(with(engine, {.at = 2, .kind = IoFault::Kind::error, .error = ENOSPC}));
    CHECK_THROWS_WITH(
        transfer(*queue, Direction::write, file.descriptor(), 0, bytes.bytes(), 2 * page),
        Containing("write of " + folder) && Containing("at offset 16384") &&
            Containing("No space left on device"));
    CHECK(queue->in_flight() == 0);
  }
}

TEST_CASE("a short transfer is continued, and was short", "[rig]") {
  for (const IoEngine engine : engines()) {
    const ScratchFile file(folder, access_here());
    HostBuffer out = patterned(16 * page), in(16 * page);
    const IoFault half{.at = 0, .kind = IoFault::Kind::short_transfer};
    const auto writer = make_io_queue(with(engine, half));
    transfer(*writer, Direction::write, file.descriptor(), 0, out.bytes(), 16 * page);
    const auto reader = make_io_queue(with(engine, half));
    transfer(*reader, Direction::read, file.descriptor(), 0, in.bytes(), 16 * page);
    CHECK(first_difference(out, in) == out.size());
  }
}

TEST_CASE("a read beyond the end of the file is an error, not a short success", "[rig]") {
  for (const IoEngine engine : engines()) {
    const ScratchFile file(folder, Access::buffered);
    HostBuffer bytes(4 * page);
    const auto queue = make_io_queue({.engine = engine});
    transfer(*queue, Direction::write, file.descriptor(), 0, bytes.bytes().first(3 * page), page);
    queue->submit({Direction::read, file.descriptor(), 0, bytes.bytes(), 7});
    const auto over = queue->reap(1);
    REQUIRE(over.size() == 1);
    CHECK(over[0].error == ENODATA);
  }
}

TEST_CASE("a delayed completion comes late and holds up no other", "[rig]") {
  constexpr std::int64_t late = 50'000'000;
  for (const IoEngine engine : engines()) {
    const ScratchFile file(folder, Access::buffered);
    HostBuffer bytes(2 * page);
    const auto queue =
        make_io_queue(with(engine, {.at = 0, .kind = IoFault::Kind::delay, .nanoseconds = late}));
    for (std::uint64_t i = 0; i < 2; ++i) {
      queue->submit({Direction::write, file.descriptor(), static_cast<std::int64_t>(i * page),
                     bytes.bytes().subspan(i * page, page), i});
    }
    std::vector<IoCompletion> over = queue->reap(1);
    while (queue->in_flight() > 0) {
      for (const IoCompletion& c : queue->reap(1)) over.push_back(c);
    }
    REQUIRE(over.size() == 2);
    const IoCompletion& delayed = over[0].tag == 0 ? over[0] : over[1];
    CHECK(delayed.completed - delayed.submitted >= late);
    CHECK(over.back().tag == 0);
  }
}

TEST_CASE("a corrupted block differs in one bit, on the way in and on the way out", "[rig]") {
  const IoFault fault{.at = 1, .kind = IoFault::Kind::corrupt};
  for (const IoEngine engine : engines()) {
    for (const Direction direction : {Direction::write, Direction::read}) {
      const ScratchFile file(folder, Access::buffered);
      HostBuffer out = patterned(4 * page), in(4 * page);
      const auto broken = make_io_queue(with(engine, fault));
      const auto sound = make_io_queue({.engine = engine});
      const bool writes = direction == Direction::write;
      transfer(writes ? *broken : *sound, Direction::write, file.descriptor(), 0, out.bytes(),
               page);
      transfer(writes ? *sound : *broken, Direction::read, file.descriptor(), 0, in.bytes(), page);
      // Block 1, in its middle: 4096 + 2048.
      const std::size_t at = first_difference(out, in);
      CHECK(at == 6144);
      CHECK((out.data()[at] ^ in.data()[at]) == std::byte{1});
      CHECK(out.data()[at] == pattern(at));  // the caller's bytes are untouched
    }
  }
}

TEST_CASE("the system's own errors come through", "[rig]") {
  for (const IoEngine engine : engines()) {
    HostBuffer bytes(page);
    const auto queue = make_io_queue({.engine = engine});
    queue->submit({Direction::read, -1, 0, bytes.bytes(), 0});
    const auto over = queue->reap(1);
    REQUIRE(over.size() == 1);
    CHECK(over[0].error == EBADF);
  }
}

TEST_CASE("a queue is used by the thread that used it first", "[rig]") {
  for (const IoEngine engine : engines()) {
    const ScratchFile file(folder, Access::buffered);
    HostBuffer bytes(page);
    const auto queue = make_io_queue({.engine = engine});
    std::thread([&] {
      transfer(*queue, Direction::write, file.descriptor(), 0, bytes.bytes(), page);
    }).join();
    CHECK_THROWS_AS(queue->submit({Direction::read, file.descriptor(), 0, bytes.bytes(), 0}),
                    std::logic_error);
  }
}

TEST_CASE("the engine says what it is", "[rig]") {
  CHECK(std::string(make_io_queue({.engine = IoEngine::threads})->engine()) == "threads");
  const auto queue = make_io_queue();
  const bool is_ring = std::string(queue->engine()) == "io_uring";
  CHECK(queue->remark().empty() == is_ring);
}
