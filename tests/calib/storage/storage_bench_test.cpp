#include <filesystem>
#include <set>

#include "calib/storage/storage_bench.hpp"
#include "models/base/error.hpp"
#include "tests/calib/storage/made_up.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

std::set<std::string> quantities(const Bench& bench) {
  std::set<std::string> names;
  for (const Row& row : bench.rows()) names.insert(row.quantity);
  return names;
}

std::size_t find(const Bench& bench, const std::string& id) {
  const auto rows = bench.rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].id().starts_with(id)) return i;
  }
  FAIL("no row " << id);
  return 0;
}

}  // namespace

TEST_CASE("every quick row gives a positive, verified sample within its writes", "[storage]") {
  StorageBench bench(small_setup(2));
  bench.prepare();
  const auto rows = bench.rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].quantity.starts_with("disk0.")) continue;  // disk1 has the same rows
    CAPTURE(rows[i].id());
    const Sample sample = bench.sample(i);
    CHECK(sample.value > 0);
    CHECK(sample.is_verified);
    CHECK(sample.elapsed.value() > 0);
    CHECK(static_cast<double>(sample.written) <= std::max(rows[i].writes.value(), 1. * mib));
    if (rows[i].writes.value() == 0) CHECK(sample.written == 0);
  }
  bench.finish();
}

TEST_CASE("rows name path and quantity, and none occurs twice", "[storage]") {
  for (const Effort effort : {Effort::quick, Effort::standard, Effort::full}) {
    Setup setup = small_setup();
    setup.effort = effort;
    setup.file_size = Bytes(256. * mib);
    setup.write_budget = Bytes(1e12);
    const StorageBench bench(setup);
    std::set<std::string> ids;
    for (const Row& row : bench.rows()) ids.insert(row.id());
    CHECK(ids.size() == bench.rows().size());
    const auto names = quantities(bench);
    for (const char* name : {"disk0.read", "disk0.write", "disk0.write_extend", "disk0.mixed_read",
                             "disk0.mixed_write", "disk0.latency_read", "disk0.flush",
                             "disk0.cpu_read", "disk0.small_files"}) {
      CAPTURE(name);
      CHECK(names.contains(name));
    }
    CHECK_FALSE(names.contains("disk0.together_read"));  // one path has none beside it
  }
}

TEST_CASE("two paths are also measured at once", "[storage]") {
  const auto names = quantities(StorageBench(small_setup(2)));
  CHECK(names.contains("disk0.together_read"));
  CHECK(names.contains("disk1.together_write"));
}

TEST_CASE("the samples of all rows fit in the write budget", "[storage]") {
  Setup setup = small_setup();
  setup.write_budget = Bytes(4. * 1024 * mib);
  const StorageBench bench(setup);
  double all = setup.file_size.value();
  for (const Row& row : bench.rows()) {
    all += static_cast<double>(samples_per_row) * row.writes.value();
  }
  CHECK(all <= 0.9 * setup.write_budget.value());
  CHECK(all >= 0.5 * setup.write_budget.value());
}

TEST_CASE("a row stops when its part of the budget is written", "[storage]") {
  StorageBench bench(small_setup());
  bench.prepare();
  const std::size_t row = find(bench, "disk0.write/block=131072/depth=1");
  for (std::int64_t i = 0; i < samples_per_row; ++i) CHECK(bench.sample(row).written > 0);
  CHECK_THROWS_AS(bench.sample(row), BudgetSpent);
  CHECK(bench.sample(find(bench, "disk0.read")).read > 0);  // reading costs nothing
}

TEST_CASE("a budget that is too small says what would do", "[storage]") {
  Setup setup = small_setup();
  setup.write_budget = Bytes(20. * mib);
  CHECK_THROWS_WITH(StorageBench(setup), Containing("a write budget of 20 MiB is too small") &&
                                             Containing("give at least"));
  CHECK_FALSE(why_no_storage(Setup{}).empty());
}

TEST_CASE("mixed writes keep to their cap while reads run", "[storage]") {
  StorageBench bench(small_setup());
  bench.prepare();
  // As if overwriting ran at 100 MiB/s: half of it for 0.2 s are 10 blocks of 1 MiB, and the one
  // that starts at the end; unpaced, a sample may write its four shares.
  bench.targets()[0].set_write_rate(BytesPerSecond(100. * mib));
  const std::size_t row = find(bench, "disk0.mixed_write/block=1048576/depth=16/write_cap=0.5");
  REQUIRE(bench.rows()[row].writes >= Bytes(12. * mib));
  const Sample sample = bench.sample(row);
  CHECK(sample.written <= 11 * mib);
  CHECK(sample.written > 0);
  CHECK(sample.read > 0);
}

TEST_CASE("a memory file system is measured as what it is, without direct access", "[storage]") {
  const std::string shm = "/dev/shm";
  if (!std::filesystem::is_directory(shm)) {
    WARN("SKIPPED: no /dev/shm");
    return;
  }
  Setup setup = small_setup();
  setup.storage = {{"memory", shm, rig::file_system_of(shm)}};
  StorageBench bench(setup);
  bench.prepare();
  CHECK_THAT(bench.targets()[0].why_buffered(), Containing("tmpfs is memory"));
  const std::size_t row = find(bench, "memory.read/block=1048576/depth=16/buffered=1");
  CHECK(bench.rows()[row].device.empty());
  CHECK(bench.sample(row).is_verified);
}

TEST_CASE("each path has a canary of one row that reads", "[storage]") {
  const auto canaries = storage_canaries(small_setup(2));
  REQUIRE(canaries.size() == 2);
  canaries[1]->prepare();
  const Sample sample = canaries[1]->sample(0);
  CHECK(canaries[1]->rows()[0].quantity == "canary.disk1");
  CHECK(sample.value > 0);
  CHECK(sample.is_verified);
  CHECK(sample.written == 0);
  canaries[1]->finish();
}

TEST_CASE("a sustained write is made when asked for, once", "[storage]") {
  Setup setup = small_setup();
  CHECK_THAT(why_no_sustained(setup), Containing("--sustained"));
  setup.sustained = Bytes(40. * mib);
  CHECK(why_no_sustained(setup).empty());
  const auto bench = make_sustained(setup);
  bench->prepare();
  const Sample sample = bench->sample(0);
  CHECK(sample.written == 40 * mib);
  CHECK(sample.series.size() == 4);  // ten blocks of 1 MiB each
  CHECK(sample.value == sample.series.back());
  CHECK_THROWS_AS(bench->sample(0), BudgetSpent);
}
