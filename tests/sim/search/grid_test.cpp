#include "sim/search/grid.hpp"

#include <tuple>

#include "tests/catch.hpp"

/// Grids whose times are made up.

using namespace tidegate;

namespace {

struct Row {
  std::string sequence, activations;
  double time, tokens_per_second;
  bool fits = true;
};

// Rows of (workload.sequence, policy.activations).
TuneReport report_of(const std::vector<Row>& rows) {
  TuneReport report;
  report.is_grid = true;
  report.axes = {"workload.sequence", "policy.activations"};
  report.tuning.margin = 0.01;
  for (const Row& row : rows) {
    Candidate c;
    c.sets = {{report.axes[0], row.sequence}, {report.axes[1], row.activations}};
    c.trial = Trial{.iteration_time = Seconds(row.time),
                    .tokens_per_second = row.tokens_per_second,
                    .fits = row.fits,
                    .needs = {},
                    .wear = {}};
    report.tuning.all.push_back(c);
  }
  return report;
}

}  // namespace

TEST_CASE("a grid names from where on a choice is the fastest that fits", "[tune]") {
  // Keeping is fastest until it does not fit; then offloading takes 100/80 - 1 = 25 % and
  // 100/50 - 1 = 100 % less time for a token than recomputing.
  const TuneReport report = report_of({{"4096", "keep", 1, 100, false},
                                       {"4096", "recompute", 1, 50},
                                       {"4096", "offload", 1, 100},
                                       {"1024", "keep", 1, 100},
                                       {"1024", "recompute", 1, 80},
                                       {"1024", "offload", 1, 99.5},
                                       {"2048", "keep", 1, 100, false},
                                       {"2048", "recompute", 1, 80},
                                       {"2048", "offload", 1, 100},
                                       {"8192", "keep", 1, 100, false},
                                       {"8192", "recompute", 1, 50, false},
                                       {"8192", "offload", 1, 50, false}});
  const auto crossing = crossing_of(report);
  REQUIRE(crossing);
  CHECK(crossing->key == "workload.sequence");
  CHECK(crossing->over == "policy.activations");
  REQUIRE(crossing->ranges.size() == 3);
  const auto& [both, offload, none] =
      std::tie(crossing->ranges[0], crossing->ranges[1], crossing->ranges[2]);
  // 100/99.5 - 1 = 0.5 %, within the margin of 1 %.
  CHECK(both.fastest == std::vector<std::string>{"keep", "offload"});
  CHECK(both.from == "1024");
  CHECK(both.to == "1024");
  CHECK(both.next == "recompute");
  CHECK(offload.fastest == std::vector<std::string>{"offload"});
  CHECK(offload.from == "2048");
  CHECK(offload.to == "4096");
  CHECK(offload.least == Approx(0.25));
  CHECK(offload.most == Approx(1.0));
  CHECK(none.fastest.empty());
  CHECK_THAT(grid_text(report),
             Containing("2048 to 4096       offload            recompute +25.0 % to +100.0 %") &&
                 Containing("8192               none fits\n"));
}

TEST_CASE("numbers are compared as such, with their unit", "[tune]") {
  TuneReport report = report_of(
      {{"16 GiB", "a", 1, 1}, {"16 GiB", "b", 1, 2}, {"8 GiB", "a", 1, 2}, {"8 GiB", "b", 1, 1}});
  REQUIRE(crossing_of(report));
  CHECK(crossing_of(report)->ranges.front().from == "8 GiB");
  report.tuning.all[0].sets[0].second = report.tuning.all[1].sets[0].second = "16 GB";
  CHECK(!crossing_of(report));
  // Two keys of numbers are a plain grid.
  CHECK(!crossing_of(
      report_of({{"1", "1", 1, 1}, {"1", "2", 1, 2}, {"2", "1", 1, 2}, {"2", "2", 1, 1}})));
}

TEST_CASE("rows of different tokens are compared for the same tokens", "[tune]") {
  // Twice the tokens in 1.5 times the time: 1.5/2 - 1 = 25 % less for a token.
  TuneReport report = report_of({{"512", "keep", 2, 256}, {"1024", "keep", 3, 1024. / 3}});
  CHECK(has_other_tokens(report.tuning));
  report.tuning.best = report.tuning.all[0];
  CHECK(slower_than_best(report.tuning, report.tuning.all[1]) == Approx(-0.25));
  CHECK_THAT(grid_note(report, 80), Containing("tokens/s"));
  CHECK(
      !has_other_tokens(report_of({{"512", "keep", 2, 256}, {"512", "recompute", 4, 128}}).tuning));
}
