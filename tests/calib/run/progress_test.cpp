#include "calib/run/progress.hpp"

#include "tests/catch.hpp"

using namespace tidegate::calib;

namespace {

ProgressNow at(std::int32_t pass, double seconds) {
  return {.doing = "nvme.read", .pass = pass, .passes = 3, .seconds = seconds};
}

}  // namespace

TEST_CASE("a line of progress says pass, blocks of all, time so far and time left", "[progress]") {
  const ProgressNow now{.doing = "nvme.read/block=4096",
                        .pass = 2,
                        .passes = 3,
                        .done = 120,
                        .all = 900,
                        .seconds = 95,
                        .left = 617.5,
                        .rejected = 4};
  // 617.5 s are 10.3 min.
  CHECK(progress_text(now) ==
        "pass 2 of 3: 120 of 900 blocks, 1 min 35 s so far, about 10 min left, 4 samples rejected: "
        "nvme.read/block=4096");
}

TEST_CASE("while files are written before the first pass, that is what it says", "[progress]") {
  const ProgressNow now{.doing = "preparing nvme.read", .all = 900, .seconds = 12};
  CHECK(progress_text(now) == "preparing nvme.read, 12 s so far; 900 blocks to measure");
}

TEST_CASE("a log gets a line when a pass begins and one every thirty seconds", "[progress]") {
  ProgressLog log(30);
  CHECK_FALSE(log.line(at(0, 0)).empty());
  CHECK(log.line(at(0, 29)).empty());
  CHECK_FALSE(log.line(at(0, 31)).empty());
  CHECK_FALSE(log.line(at(1, 32)).empty());  // pass 1 begins
  CHECK(log.line(at(1, 60)).empty());        // 28 s after the last line
  CHECK_FALSE(log.line(at(1, 62)).empty());
  CHECK(log.line(at(1, 63)).empty());
  CHECK(log.line(at(2, 64)).back() == '\n');
}
