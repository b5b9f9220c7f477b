#include <sstream>

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
          {"drive.latency is 80 us: a guess from similar drives of the same year and class"},
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

TEST_CASE("pools that differ in their name only are told once", "[text]") {
  const std::string text = to_text(full_run(20).report());
  CHECK(has(text,
            "gpu0 (2 alike)  10.24 GiB  18.63 GiB  55 %\n"
            "  weights       5.588 GiB             30 %\n"));
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

TEST_CASE("kin are told together when they are alike and apart when they are not", "[text]") {
  std::vector<Report::Resource> gpus = {
      {.name = "gpu0 h2d", .busy_fraction = 0.5, .exposed = 1_s},
      {.name = "gpu12 h2d", .busy_fraction = 0.54, .exposed = 2_s},
      {.name = "idle"}};
  SECTION("4 points apart: one line with the mean and the sum") {
    const std::vector<Kin> kin = kin_of(gpus);
    REQUIRE(kin.size() == 1);
    CHECK(kin[0].name == "gpu* h2d (2)");
    CHECK(kin[0].busy_fraction == Approx(0.52));
    CHECK(kin[0].exposed == 3_s);
  }
  SECTION("40 points apart: the difference is the news") {
    gpus[0].busy_fraction = 0.9;
    const std::vector<Kin> kin = kin_of(gpus);
    REQUIRE(kin.size() == 2);
    CHECK(kin[0].name == "gpu12 h2d");  // more exposed
  }
}

TEST_CASE("numbers have four digits and no exponent", "[text]") {
  CHECK(number_text(16851.2) == "16850");
  CHECK(number_text(9999.7) == "10000");
  CHECK(number_text(0.5) == "0.5");
  CHECK(count_text(48.16e9) == "48.16 billion");
  CHECK(percent_text(0.974) == "97 %");
  CHECK(percent_text(0.032) == "3.2 %");
  CHECK(percent_text(0) == "0 %");
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
