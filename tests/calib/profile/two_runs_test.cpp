#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "calib/node/node.hpp"
#include "calib/profile/diff.hpp"
#include "tests/calib/fit/noise.hpp"
#include "tests/calib/profile/files.hpp"
#include "tests/catch.hpp"

/// Two runs of calib on the same machine, made up again and again: how often `diff` calls a value
/// changed that did not change.
///
/// The noise is that of two complete default runs on a shared virtual machine (2026-11-30, 107
/// compute rows and 43 storage rows with three passes): blocks of a row deviate by 9 %, rows differ
/// in that by a factor of three (deciles 4 and 19 %), medians of two runs by 12 %, of which what
/// blocks cannot explain is 3 % in each run; all rows together moved by 1 to 3 %.
using namespace tidegate;
using namespace tidegate::calib;

namespace {

constexpr double typical = 0.085, freedom = 6;  // of the blocks' deviations, over rows
constexpr double own_drift = 0.03, common_drift = 0.02;

struct True {
  Row row;
  double value = 0, deviation = 0;
};

class Machine {
 public:
  explicit Machine(std::uint64_t seed) : noise_(seed) {
    const Unit bytes = Unit::bytes_per_second, each = Unit::per_second, s = Unit::seconds;
    add("gemm", {{"m", 1024}, {"n", 1024}, {"k", 1024}, {"threads", 2}}, Unit::flops_per_second);
    add("dram.triad", {{"bytes", 1e9}, {"threads", 2}}, bytes);
    add("adam", {{"parameters", 6e7}, {"threads", 2}, {"gradient", 0}}, each);
    add("cast", {{"elements", 6e7}, {"threads", 2}}, each);
    add("host_copy", {{"bytes", 6e7}}, bytes);
    for (int i = 0; i < 30; ++i) add("other", {{"i", i}}, bytes);
    const Settings deep = {{"block", 1048576}, {"depth", 16}};
    add("nvme.read", deep, bytes, Gate::io);
    add("nvme.write", deep, bytes, Gate::io);
    add("nvme.latency_read", {{"block", 4096}}, s, Gate::io);
    for (int i = 0; i < 15; ++i) add("nvme.other", {{"i", i}}, bytes, Gate::io);
  }

  Measurements run(std::int32_t passes) {
    Measurements m;
    m.passes = passes;
    m.is_complete = true;
    const double common = noise_.factor(common_drift);
    for (const True& t : rows_) {
      RowResult row{t.row, {}, {}};
      const double middle = t.value * common * noise_.factor(own_drift);
      for (std::int32_t pass = 0; pass < passes; ++pass) {
        row.blocks.push_back(
            {.pass = pass,
             .is_converged = true,
             .samples = {
                 {.value = middle * noise_.factor(t.deviation), .spoiled = {}, .series = {}}}});
      }
      m.rows.push_back(std::move(row));
    }
    return m;
  }

  void change(const std::string& quantity, double factor) {
    for (True& t : rows_) t.value *= t.row.quantity == quantity ? factor : 1;
  }

 private:
  using Settings = std::vector<std::pair<std::string, double>>;
  void add(const std::string& quantity, Settings at, Unit unit, Gate gate = Gate::cpu) {
    double chi_squared = 0;
    for (int i = 0; i < freedom; ++i) chi_squared += std::pow(noise_.normal(), 2);
    rows_.push_back({{.quantity = quantity, .at = std::move(at), .unit = unit, .gate = gate},
                     1e9,
                     typical * std::sqrt(freedom / chi_squared)});
  }
  Noise noise_;
  std::vector<True> rows_;
};

std::string profile_of(const Measurements& m) {
  Setup setup;
  setup.threads = 2;
  setup.storage.push_back({.name = "nvme", .folder = "/", .facts = {.total = Bytes(1e12)}});
  Account account;
  account.tool = "tidegate";
  account.created = "2026-11-30T08:00:00Z";
  return to_yaml(node_profile(m, setup, std::nullopt), m, account);
}

struct Count {
  double values = 0, flagged = 0, runs_with_any = 0, found = 0;
};
// `factor`: what adam changes by between the runs.
Count compare(std::int32_t passes, int pairs, double factor = 1) {
  const Files files;
  Count count;
  for (int pair = 0; pair < pairs; ++pair) {
    Machine machine(static_cast<std::uint64_t>(1000 * passes + pair));
    const auto before = files.write("a.yaml", profile_of(machine.run(passes)));
    machine.change("adam", factor);
    const auto after = files.write("b.yaml", profile_of(machine.run(passes)));
    const Diff d = diff(before, after);
    count.values += static_cast<double>(d.changes.size());
    count.flagged += static_cast<double>(d.beyond_noise());
    count.runs_with_any += d.beyond_noise() > 0 ? 1 : 0;
    const bool is_found = std::ranges::any_of(d.changes, [](const Diff::Change& c) {
      return c.key == "host.adam_rate" && c.is_beyond_noise();
    });
    count.found += is_found ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("of two runs on a machine that did not change, few find anything changed", "[diff]") {
  constexpr int pairs = 200;
  for (const std::int32_t passes : {2, 3}) {
    const Count c = compare(passes, pairs);
    WARN(passes << " passes: " << c.flagged << " of " << c.values << " values, " << c.runs_with_any
                << " of " << pairs << " pairs of runs");
    CHECK(c.values >= 10 * pairs);
    CHECK(c.flagged <= 0.02 * c.values);
    CHECK(c.runs_with_any <= 0.10 * pairs);
  }
}

TEST_CASE("a value that doubled is found by two quick runs", "[diff]") {
  // Noise of about sqrt(2) · 9 %: log 2 is five times as much.
  CHECK(compare(2, 50, 2.0).found >= 40);
}
