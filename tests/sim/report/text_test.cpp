#include <sstream>

#include "sim/report/assumptions.hpp"
#include "sim/report/kin.hpp"
#include "sim/report/report.hpp"
#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "tests/catch.hpp"
#include "tests/sim/report/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Run full_run(double capacity_gb) {
  Run run = two_ranks(capacity_gb);
  run.facts = {
      .scenario = "toy_two_ranks",
      .policy = "write gradients",
      .profile = "toy",
      .revision = "1a2b3c4",
      .parameters = 48'160'000'000,
      .active_parameters = 48'160'000'000,
      .tokens_per_iteration = 168'512,
      .gpus = 2,
      .model_flops = Flops(60e12),
      .hardware_flops = Flops(80e12),
      .assumptions =
          {"paths.drive.latency = 80 us (a guess from similar drives of the same year and class)"},
      .notes = {"gradients are written, never read"},
      .next = {"tidegate simulate toy.yaml --trace toy.json"},
      .storage = {{"drive", Bytes(17.28e12 * 365.25), 2}}};
  return run;
}

}  // namespace

TEST_CASE("the text begins with the verdict, the speed and what holds it back", "[text]") {
  const std::string text = to_text(full_run(20).report());
  CHECK(
      text.starts_with("toy_two_ranks · write gradients · toy · 1a2b3c4\n\n"
                       "Fits. An iteration takes 10 s: 16850 tokens/s, 3 TFLOP/s per GPU.\n"
                       "Most exposed: gpu* (2), 45 % busy and 45 % exposed.\n"
                       "No schedule of these tasks beats 7 s (longest chain of dependences).\n"));
}

TEST_CASE("where a faster one of the most exposed gains little, what binds is named", "[text]") {
  Report report = full_run(20).report();
  const std::string exposed = "Most exposed: gpu* (2), 45 % busy and 45 % exposed";
  report.elasticities = {{"gpu* (2)", 0.14}, {"drive", 0.18}};
  CHECK(has(to_text(report, 200),
            exposed + "; but drive binds (0.18 % shorter for 1 %, gpu* (2) 0.14 %).\n"));
  report.elasticities = {{"gpu* (2)", 0.18}, {"drive", 0.14}};
  CHECK(has(to_text(report, 200), exposed + ".\n"));
  // Neither is worth a word.
  report.elasticities = {{"gpu* (2)", 0}, {"drive", 0.01}};
  CHECK(has(to_text(report, 200), exposed + ".\n"));
}

TEST_CASE("changes that fit are told with their flags, cost and peaks", "[text]") {
  Report report = full_run(10).report();
  report.fixes = {.tried = 7,
                  .found = {{.what = "less of it",
                             .sets = {"a.b=2", "c={name: x, k: 1}"},
                             .iteration_time = 15_s,
                             .tokens_per_second = 11234,
                             .slow_down = 1.5,
                             .pools = {{"gpu0", 2_GiB, 4_GiB}, {"gpu1", 2_GiB, 4_GiB}}}}};
  CHECK(has(to_text(report, 100),
            "Changes that fit, fewest keys first, then fastest; 7 were simulated.\n"
            "  1. less of it\n"
            "     --set a.b=2\n"
            "     --set 'c={name: x, k: 1}'\n"
            "     An iteration takes 15 s (50 % longer), 11230 tokens/s. gpu0 (2 alike) peaks at 2 "
            "GiB of 4 GiB.\n"
            "\n"
            "With enough memory"));
}

TEST_CASE("when no change fits, the nearest is told with the memory that it needs", "[text]") {
  Report report = full_run(10).report();
  report.fixes = {
      .tried = 7,
      .nearest = Report::Fix{.what = "less of it",
                             .sets = {"a.b=2"},
                             .iteration_time = 10_s,
                             .tokens_per_second = 16850,
                             .slow_down = 1,
                             .pools = {{"gpu0", 5_GiB, 4_GiB}, {"host", 1_GiB, 2_GiB}}}};
  CHECK(has(to_text(report, 100),
            "No change found that fits; 7 were simulated.\n"
            "  Nearest: less of it\n"
            "  --set a.b=2\n"
            "  It would fit with gpu0 of 5 GiB (it has 4 GiB). An iteration takes 10 s (as long), "
            "16850 tokens/s.\n"));
}

TEST_CASE("pools that differ in their name only are told once", "[text]") {
  const std::string text = to_text(full_run(20).report());
  CHECK(has(text,
            "gpu0 (2 alike)  10.24 GiB  10.25 GiB  18.63 GiB  55 %\n"
            "  weights       5.588 GiB                        30 %\n"));
}

TEST_CASE("a run that does not fit says where, when, who and what would help", "[text]") {
  // Alike pools are told once. 1 GB is too much; each of the owners holds more.
  CHECK(
      has(to_text(full_run(10).report(), 200),
          "Does not fit.\n"
          "gpu0, gpu1: 10.24 GiB needed, room for 9.313 GiB. First too much is 'backward' at 2 s, "
          "when 10.24 GiB are held:\n"
          "  weights 5.588 GiB, activations 2.794 GiB, gradients 1.863 GiB\n"
          "  953.7 MiB too much. Enough alone, if it lived elsewhere: gradients or activations or "
          "weights.\n\n"
          "With enough memory, an iteration would take 10 s"));
}

TEST_CASE("nobody is told to move the operating system elsewhere", "[text]") {
  Report report = full_run(10).report();
  report.overflows = {
      {.pool = "host",
       .task = "set up",
       .at = 0_s,
       .capacity = 4_GiB,
       .held = 6_GiB,
       .needed = 6_GiB,
       .owners = {{"states", 3LL << 30}, {"system", 2LL << 30}, {"rest", 1LL << 30}}}};
  // 2 GiB too much: states and system hold that, rest does not.
  CHECK(
      has(to_text(report, 200), "2 GiB too much. Enough alone, if it lived elsewhere: states.\n"));
}

TEST_CASE("kin are one line; what is not alike among them is a range", "[text]") {
  std::vector<Report::Resource> gpus = {{.name = "gpu0 h2d",
                                         .busy_fraction = 0.5,
                                         .exposed = 1_s,
                                         .bytes = 1_GB,
                                         .only_carries = true},
                                        {.name = "gpu12 h2d",
                                         .busy_fraction = 0.54,
                                         .exposed = 2_s,
                                         .bytes = 2_GB,
                                         .only_carries = true},
                                        {.name = "idle"}};
  SECTION("4 points apart: the mean, and sums") {
    const std::vector<Kin> kin = kin_of(gpus);
    REQUIRE(kin.size() == 1);
    CHECK(kin[0].name == "gpu* h2d (2)");
    CHECK(percent_text(kin[0].busy_fraction) == "52 %");
    CHECK(kin[0].exposed == 3_s);
    CHECK(kin[0].bytes == 3_GB);
    CHECK(kin[0].only_carries);
  }
  SECTION("36 points apart: the difference is news") {
    gpus[0].busy_fraction = 0.9;
    const std::vector<Kin> kin = kin_of(gpus);
    REQUIRE(kin.size() == 1);
    CHECK(percent_text(kin[0].busy_fraction) == "54 to 90 %");
  }
  SECTION("of several nodes too") {
    gpus[0].name = "node0.network.out";
    gpus[1].name = "node13.network.out";
    const std::vector<Kin> kin = kin_of(gpus);
    REQUIRE(kin.size() == 1);
    CHECK(kin[0].name == "node*.network.out (2)");
  }
  SECTION("one member alone keeps its name") { CHECK(kin_of({gpus[1]})[0].name == "gpu12 h2d"); }
}

TEST_CASE("bytes are told of what does nothing but carry them", "[text]") {
  Report report;
  report.resources = {{.name = "drive", .busy_fraction = 0.5, .bytes = 1_GiB, .only_carries = true},
                      {.name = "dram", .busy_fraction = 0.4, .bytes = 2_GiB}};
  const std::string text = to_text(report);
  CHECK(has(text, "1 GiB"));
  CHECK_FALSE(has(text, "2 GiB"));
}

TEST_CASE("assumptions about what is exposed most come first", "[text]") {
  Report report;
  report.facts.assumptions = {"gpus.context = 0.5 GiB (a)",     "gpus.launch = 5 us (b)",
                              "host.adam_rate = 3e9 (c)",       "host.roots.plx0.h2d = 25 GB/s (d)",
                              "paths.nvme.latency = 80 us (e)", "paths.pfs.latency = 1 ms (f)"};
  report.resources = {
      {.name = "gpu0.compute", .exposed = 1_s}, {.name = "gpu1.compute", .exposed = 1_s},
      {.name = "numa0.dram", .exposed = 3_s},   {.name = "plx0.h2d", .exposed = 1_s},
      {.name = "nvme", .exposed = 9_s},         {.name = "pfs"}};
  const auto keys = [&](std::size_t most) {
    std::string text;
    for (const std::string& line : foremost_assumptions(report, most))
      text += line[line.size() - 2];
    return text;
  };
  CHECK(keys(9) == "ecbd");  // gpu0 and gpu1 together: 2 s; neither memory nor what is not exposed
  CHECK(keys(2) == "ec");
  SECTION("several nodes have the same assumptions") {
    for (Report::Resource& r : report.resources) {
      if (r.name == "nvme") r.name = "node12.nvme";
    }
    CHECK(keys(9) == "ecbd");
  }
  SECTION("the room of a memory comes first when it is too small") {
    report.overflows = {{.pool = "gpu1"}};
    CHECK(keys(2) == "ae");
  }
  SECTION("the text says how many more there are") {
    CHECK(has(to_text(report), "  - paths.nvme.latency = 80 us (e)\n"));
    CHECK(has(to_text(report), "  - 2 more; --json lists all\n"));
  }
}

TEST_CASE("a drive that lasts less than a year is told in days", "[text]") {
  Report report;
  report.paths = {{.name = "nvme", .written = 1_GiB, .life_years = 0.1479},
                  {.name = "pfs", .written = 1_GiB, .life_years = 3.456}};
  CHECK(has(to_text(report), "54 days\n"));
  CHECK(has(to_text(report), "3.46 years\n"));
}

TEST_CASE("wear is told beside the rating, with both amplifications", "[text]") {
  Report report;
  Report::Path path{.name = "nvme", .written = 1_GiB};
  const auto told = [&] {
    report.paths = {path};
    return to_text(report, 100);
  };
  CHECK_FALSE(has(told(), "drive writes"));
  path.drive_writes_per_day = 10.954;
  CHECK(has(told(), "nvme: 10.95 drive writes a day, not rated.\n"));
  path.rated_drive_writes_per_day = 3;
  path.rated_write_amplification = 2.5;
  CHECK(
      has(told(),
          "nvme: 10.95 drive writes a day, rated for 3. Write amplification 1, rated with 2.5.\n"));
}

TEST_CASE("numbers have four digits and no exponent", "[text]") {
  CHECK(number_text(16851.2) == "16850");
  CHECK(number_text(9999.7) == "10000");
  CHECK(number_text(0.5) == "0.5");
  CHECK(count_text(48.16e9) == "48.16 billion");
  CHECK(percent_text(0.974) == "97 %");
  CHECK(percent_text(0.032) == "3.2 %");
  CHECK(percent_text(0) == "0 %");
  CHECK(percent_text(0.0004) == "<0.1 %");
  CHECK(bar(0.5, 4) == "██");
  CHECK(bar(0.3125, 4) == "█▎");  // 1.25 columns
}

TEST_CASE("every section is there, and no line is wider than asked", "[text]") {
  const std::string text = to_text(full_run(20).report(), 72);
  for (const char* title :
       {"Phase ", "Memory ", "Resource ", "Critical path ", "Storage, ", "Notes\n",
        "Assumed, not measured\n", "Next\n", "48.16 billion parameters"}) {
    CHECK(has(text, title));
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(columns_of(line) <= 72);
    CHECK_FALSE(line.ends_with(' '));
  }
}

TEST_CASE("a resource that falls behind is called not steady", "[text]") {
  Report report = full_run(20).report();
  report.bound = {12_s, 7_s, "drive"};
  CHECK(has(to_text(report), "Not steady: drive has 12 s of work per iteration"));
}

TEST_CASE("the text of a run without facts has no empty parts", "[text]") {
  const std::string text = to_text(RunBuilder().finish(1, 1, {}).report());
  CHECK(text.starts_with("Fits. An iteration takes 0 s."));
  CHECK_FALSE(has(text, "nan"));
  CHECK_FALSE(has(text, "\n\n\n"));
}
