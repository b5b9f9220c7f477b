#include "calib/cluster/shared_path.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "calib/cluster/neighbour.hpp"
#include "calib/cluster/sharing.hpp"
#include "calib/node/estimate.hpp"
#include "models/base/error.hpp"
#include "tests/calib/cluster/thread_team.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;
using tidegate::test::on_ranks;
namespace fs = std::filesystem;

namespace {

/// Two empty folders of the build tree, removed afterwards.
struct Folders {
  fs::path root = fs::path(TIDEGATE_BINARY_DIR) / ("shared_test_" + std::to_string(getpid()));
  std::string a = (root / "a").string(), b = (root / "b").string();
  Folders() {
    fs::create_directories(a);
    fs::create_directories(b);
  }
  ~Folders() { fs::remove_all(root); }
};

constexpr double mib = 1048576;

SharedPlan small_plan(const std::string& folder) {
  SharedPlan plan;
  plan.path = {.name = "pfs", .folder = folder, .facts = {}};
  plan.passes = 2;
  plan.samples = 2;
  plan.sample = Seconds(0.02);
  plan.file = Bytes(16 * mib);
  plan.budget = Bytes(512 * mib);
  return plan;
}

const RowResult* find(const Measurements& m, const std::string& id) {
  const auto at =
      std::ranges::find_if(m.rows, [&id](const RowResult& r) { return r.row.id() == id; });
  return at == m.rows.end() ? nullptr : &*at;
}

std::array<SharedResult, 2> measure_on_two(const std::array<SharedPlan, 2>& plans) {
  std::array<SharedResult, 2> results;
  on_ranks(2, [&](Team& team) {
    const auto rank = static_cast<std::size_t>(team.rank());
    results[rank] = measure_shared(team, plans[rank], [](const std::string&) {});
  });
  return results;
}

}  // namespace

TEST_CASE("a folder is shared when all see what the first one writes, and nothing stays in it",
          "[cluster]") {
  const Folders folders;
  std::array<std::vector<Sharing>, 3> seen;
  on_ranks(3, [&](Team& team) {
    const bool is_last = team.rank() == 2, is_first = team.rank() == 0;
    // The first path is one folder for all, the second each rank's own, the third that of two.
    const std::vector<std::string> own = {folders.a, is_first ? folders.a : folders.b,
                                          is_last ? folders.b : folders.a};
    seen[static_cast<std::size_t>(team.rank())] = sharing_of(team, own);
  });
  const std::vector<Sharing> expected = {Sharing::all, Sharing::none, Sharing::some};
  CHECK(seen[0] == expected);
  CHECK(seen[1] == expected);
  CHECK(seen[2] == expected);
  CHECK(fs::is_empty(folders.a));
  CHECK(fs::is_empty(folders.b));
}

TEST_CASE("processes that name different numbers of folders are refused, all of them",
          "[cluster]") {
  const Folders folders;
  std::array<bool, 2> refused{};
  on_ranks(2, [&](Team& team) {
    const std::vector<std::string> own(team.rank() == 0 ? 1 : 2, folders.a);
    try {
      sharing_of(team, own);
    } catch (const InputError&) {
      refused[static_cast<std::size_t>(team.rank())] = true;
    }
  });
  CHECK(refused == std::array<bool, 2>{true, true});
}

TEST_CASE("clients are counted in powers of two up to all", "[cluster]") {
  CHECK(client_counts(2) == std::vector<std::int32_t>{1, 2});
  CHECK(client_counts(6) == std::vector<std::int32_t>{1, 2, 4, 6});
}

TEST_CASE("clients read and write a path one by one and together, and leave nothing", "[cluster]") {
  const Folders folders;
  const SharedPlan plan = small_plan(folders.a);
  const auto results = measure_on_two({plan, plan});
  CHECK(results[0].why_not.empty());
  CHECK(results[0].all.is_complete);
  const bool is_direct =
      find(results[0].all, "pfs.shared.read/block=1048576/depth=16/clients=1") != nullptr;
  const std::string at = std::string("/block=1048576/depth=16") + (is_direct ? "" : "/buffered=1");
  for (const std::string kind : {"read", "write"}) {
    for (const std::string clients : {"/clients=1", "/clients=2"}) {
      INFO(kind << clients);
      const RowResult* row = find(results[0].all, "pfs.shared." + kind + at + clients);
      REQUIRE(row);
      CHECK(row->faults.empty());
      CHECK(row->blocks.size() == 2);             // passes
      CHECK(row->blocks[0].samples.size() == 2);  // the warm-up does not count
      CHECK(row->blocks[0].value() > 0);
    }
    // The time is that of the slowest: what clients have for themselves sums up to no less.
    const RowResult* both = find(results[0].all, "pfs.shared." + kind + at + "/clients=2");
    for (const TakenSample& s : both->blocks[0].samples) {
      REQUIRE(s.series.size() == 2);
      CHECK(s.series[0] + s.series[1] >= 0.999 * s.value);
    }
  }
  REQUIRE(results[0].clients.size() == 2);
  for (const Measurements& client : results[0].clients) CHECK(client.rows.size() == 7);
  CHECK(results[1].clients.empty());
  CHECK(fs::is_empty(folders.a));
}

TEST_CASE("what another client wrote is read with all at once, apart from what each wrote itself",
          "[cluster]") {
  const Folders folders;
  const SharedPlan plan = small_plan(folders.a);
  const auto results = measure_on_two({plan, plan});
  const auto row = std::ranges::find_if(results[0].all.rows, [](const RowResult& r) {
    return r.row.quantity == "pfs.shared.read_other";
  });
  REQUIRE(row != results[0].all.rows.end());
  CHECK(row->faults.empty());  // contents are told by the seed of the client that wrote them
  CHECK(coordinate(row->row, "clients") == 2);
  CHECK(row->blocks.size() == 2);
  for (const TakenSample& s : row->blocks[0].samples) {
    REQUIRE(s.series.size() == 2);
    CHECK(s.series[0] > 0);
    CHECK(s.series[1] > 0);
  }
  CHECK(fs::is_empty(folders.a));  // the names are gone
}

TEST_CASE("one's own file in the place of another's is wrong contents", "[cluster]") {
  const Folders folders;
  Setup setup;
  setup.file_size = Bytes(8 * mib);
  setup.write_budget = Bytes(64 * mib);
  setup.seed = 1;
  const StorageTarget path = {.name = "pfs", .folder = folders.a, .facts = {}};
  Target first(path, setup, 1);
  const OfferedFile offered(first, 8 << 20);
  CHECK(first.written() == 8 << 20);
  const StreamPlan some{.depth = 4, .most_bytes = 6 << 20};
  NeighbourFile right(path, offered.name(), 8 << 20, 1);
  // 6 MiB and 6 MiB more, round the end of a file of 8.
  CHECK(right.read(some).wrong_blocks == 0);
  CHECK(right.read(some).wrong_blocks == 0);
  NeighbourFile wrong(path, offered.name(), 8 << 20, 2);
  // The last block of 1 MiB in each of four places, all of its 256 blocks of 4 KiB.
  CHECK(wrong.read(some).wrong_blocks == 4 * 256);
}

TEST_CASE("mixed traffic of all clients is measured at two paces of the writes", "[cluster]") {
  const Folders folders;
  const SharedPlan plan = small_plan(folders.a);
  const auto results = measure_on_two({plan, plan});
  std::size_t mixes = 0;
  for (const RowResult& row : results[0].all.rows) {
    if (row.row.quantity != "pfs.shared.mixed_write") continue;
    ++mixes;
    CHECK(row.row.at.back() == std::pair<std::string, double>{"clients", 2});
  }
  CHECK(mixes == 2);
}

TEST_CASE("what one client cannot do ends the measuring of all, with its reason", "[cluster]") {
  const Folders folders;
  const SharedPlan good = small_plan(folders.a);
  SharedPlan bad = good;
  bad.path.folder = folders.a + "/missing";
  const auto results = measure_on_two({good, bad});
  CHECK_THAT(results[0].why_not, Containing("missing"));
  CHECK(results[0].why_not == results[1].why_not);
  CHECK(results[0].all.rows.empty());
  CHECK(fs::is_empty(folders.a));
}

TEST_CASE("a write budget that is too small for all clients is told with one that is enough",
          "[cluster]") {
  const Folders folders;
  SharedPlan plan = small_plan(folders.a);
  plan.budget = Bytes(64 * mib);
  const auto results = measure_on_two({plan, plan});
  // Each: half of the budget; files of 8 MiB, 14 MiB of writes for them and for what others read;
  // steps 1 and 2 clients and mixes of 0.5 and 1: 3.5, in 2 passes of 3 samples: 21 of at least
  // 4 MiB. 2 (84 + 14)/0.95.
  CHECK_THAT(results[0].why_not,
             Containing("64 MiB is too small for 2 clients") && Containing("at least 206.3 MiB"));
  CHECK(fs::is_empty(folders.a));
}

TEST_CASE("a failure of any process is told by the first, as its kind, and ends all", "[cluster]") {
  // By rank what it throws; the first has nothing, or another fault, or the same.
  const auto agreed = [](const std::exception_ptr& first, const std::exception_ptr& second) {
    std::pair<std::string, int> result;  // what rank 0 says, and with which exit code rank 1 ends
    on_ranks(2, [&](Team& team) {
      try {
        agree(team, team.rank() == 0 ? first : second);
      } catch (const ToldByFirst& told) {
        CHECK(team.rank() == 1);
        result.second = told.exit_code;
      } catch (const InputError& error) {
        result.first = std::string("input: ") + error.what();
      } catch (const MachineError& error) {
        result.first = std::string("machine: ") + error.what();
      } catch (const std::logic_error& error) {
        result.first = std::string("bug: ") + error.what();
      }
    });
    return result;
  };
  using Said = std::pair<std::string, int>;
  const auto input = std::make_exception_ptr(InputError("no such folder"));
  const auto machine = std::make_exception_ptr(MachineError("disk full"));
  const auto bug = std::make_exception_ptr(std::logic_error("not so"));
  CHECK(agreed({}, {}) == Said{"", 0});
  CHECK(agreed({}, input) == Said{"input: process 1: no such folder", 2});
  CHECK(agreed(input, {}) == Said{"input: no such folder", 2});
  CHECK(agreed(input, input) == Said{"input: no such folder", 2});
  CHECK(agreed(input, machine) == Said{"machine: no such folder\nprocess 1: disk full", 3});
  CHECK(agreed(bug, machine) == Said{"bug: not so\nprocess 1: disk full", 4});
}
