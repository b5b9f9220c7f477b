#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/scenario/scenario.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"
#include "validate/log/comparison.hpp"
#include "validate/log/explain.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

Scenario scenario() {
  const test::TemporaryFolder folder;
  return load_scenario(folder.write(
      "s.yaml",
      "workload: {network: {layers: 2, hidden: 512, heads: 8, vocabulary: 1000}, sequence: 128, "
      "micro_batch: 4, accumulation: 2}\nhardware: workstation_rtx4090\npolicy: {}\n"));
}

// Iterations of 4 s with 8 sequences of 128 tokens.
Report report() {
  Report r;
  r.facts.tokens_per_iteration = 8 * 128;
  r.facts.parameters = 1'000'000;
  r.iteration_time = 4_s;
  r.phases = {1_s, 2_s, 1_s, 0_s};
  r.pools.push_back({.name = "host", .peak = 8_GiB});
  Report::Pool gpu{.name = "gpu0", .peak = 3_GiB};
  gpu.allocator.emplace();
  gpu.allocator->allocated_peak = 3_GiB;
  gpu.allocator->reserved_peak = 4_GiB;
  r.pools.push_back(gpu);
  r.resources.push_back({.name = "nvme", .exposed = 3_s});
  return r;
}

LogComparison compared(const std::string& text) {
  std::istringstream in(text);
  return compare(read_log(in, "run.log"), scenario(), report());
}

std::string iterations(int count, const std::string& step = "2000.00") {
  std::string text;
  for (int i = 0; i < count; ++i) {
    // The first takes ten times as long.
    const std::string more = i == 0 ? "0" : "";
    text +=
        "[Rank 0] time (ms) | fwd_microstep: 1.0 | step_microstep: 0.1\n"
        "[Rank 0] time (ms) | fwd_microstep: 1.0 | step_microstep: 0.1\n"
        "[Rank 0] time (ms) | fwd: 1000" +
        more + ".00 | bwd: 2000" + more + ".00 | bwd_inner: 1500.00 | step: " + step + "\n";
  }
  return text;
}

double error_of(const LogComparison& c, const std::string& name) {
  const LogRow* row = c.row(name);
  REQUIRE(row);
  REQUIRE(row->error());
  return *row->error();
}

}  // namespace

TEST_CASE("phases are compared after the beginning, errors signed", "[log]") {
  const LogComparison c = compared(iterations(8));
  CHECK(c.iterations == 8);
  CHECK(c.skipped == 2);
  CHECK(error_of(c, "forward") == Approx(0).margin(1e-12));
  // Update: 1 s predicted, 2 s logged: -50 %; iteration 4 of 5 s: -20 %.
  CHECK(error_of(c, "update") == Approx(-0.5));
  CHECK(error_of(c, "iteration") == Approx(-0.2));
  CHECK(c.mismatches.empty());
  REQUIRE(c.explanations.size() == 2);
  CHECK_THAT(c.explanations[0], Containing("in update: 2 s measured, 1 s predicted"));
  // 3 of 4 s.
  CHECK_THAT(c.explanations[1], Containing("nvme 75 %"));
}

TEST_CASE("gradients are written out within backward, states within the update", "[log]") {
  CHECK_THAT(why_alone("swap_out_gradient"), Containing("part of backward"));
  CHECK_THAT(why_alone("async_swap_gradient_wait"), Containing("part of backward"));
  CHECK_THAT(why_alone("swap_out_state"), Containing("part of the update"));
}

TEST_CASE("what one side has alone is listed", "[log]") {
  const LogComparison c = compared(iterations(8));
  REQUIRE(c.only_logged.size() == 1);
  CHECK(c.only_logged[0].name == "backward_inner");
  CHECK_THAT(c.only_logged[0].why, Containing("part of backward"));
  REQUIRE(c.only_predicted.size() == 3);
  CHECK_THAT(c.only_predicted[0], Containing("GPU memory allocated, peak: 3 GiB"));
}

TEST_CASE("a log of another batch says so, and which change would compare", "[log]") {
  const LogComparison c = compared("  train_micro_batch_size_per_gpu ....... 2\n" + iterations(8));
  REQUIRE(c.mismatches.size() == 1);
  CHECK(c.mismatches[0].logged == 2);
  CHECK(c.mismatches[0].scenario == 4);
  CHECK(c.mismatches[0].how == "--set workload.micro_batch=2");
  CHECK_THAT(to_text(c), Containing("run.log:1:3"));
}

TEST_CASE("micro-steps between updates tell the accumulation", "[log]") {
  std::string text;
  for (int i = 0; i < 3; ++i)
    text +=
        "time (ms) | fwd: 1.0 | bwd: 1.0 | step: 1.0\n"
        "time (ms) | fwd_microstep: 1.0\n";
  const LogComparison c = compared(text);
  REQUIRE(c.mismatches.size() == 1);
  CHECK(c.mismatches[0].how == "--set workload.accumulation=1");
}

TEST_CASE("samples per second and the iteration tell the batch", "[log]") {
  // 4 samples/s · 4 s = 16, and the scenario has 8: accumulation 2 · 16 / 8 = 4.
  std::string text;
  for (int i = 0; i < 6; ++i)
    text += "elapsed time per iteration (ms): 4000.0 |\nCurrSamplesPerSec=4.0, \n";
  const LogComparison c = compared(text);
  REQUIRE(c.mismatches.size() == 1);
  CHECK(c.mismatches[0].logged == Approx(16));
  CHECK_THAT(c.mismatches[0].how, Containing("--set workload.accumulation=4"));
}

TEST_CASE("where only a rate is logged, the iteration follows from the batch", "[log]") {
  // 8 sequences at 1.6 per second take 5 s; 4 / 5 - 1 = -20 %.
  const LogComparison c = compared("{'train_samples_per_second': 1.6, 'epoch': 1.0}\n");
  CHECK(error_of(c, "iteration") == Approx(-0.2));
  // 2 samples per second predicted: 2 / 1.6 - 1.
  CHECK(error_of(c, "samples per second") == Approx(0.25));
  CHECK_THAT(c.row("samples per second")->note, Containing("whole run"));
  CHECK_THAT(to_text(c), Containing("one mean over the whole run"));
}

TEST_CASE("where nothing was measured there is no error", "[log]") {
  const LogComparison c = compared("time (ms) | fwd: 1000.0 | bwd: 0.00 | step: 1000.0\n");
  CHECK_FALSE(c.row("backward")->error());
  CHECK(nlohmann::json::parse(to_json(c))["rows"][1]["error"].is_null());
}

TEST_CASE("memory is compared by the highest value logged", "[log]") {
  const LogComparison c = compared(
      iterations(8) +
      "MA 1.0 GB  Max_MA 2.0 GB  CA 1.0 GB  Max_CA 5 GB \nMA 1.0 GB  Max_MA 1.5 GB  CA 1.0 GB  "
      "Max_CA 5 GB \n");
  // 3 GiB predicted of 2, 4 of 5.
  CHECK(error_of(c, "GPU memory allocated, peak") == Approx(0.5));
  CHECK(error_of(c, "GPU memory reserved, peak") == Approx(-0.2));
}

TEST_CASE("memory of DeepSpeed on the CPU is not taken for a GPU's", "[log]") {
  const LogComparison c = compared(
      "[INFO] [real_accelerator.py:254:get_accelerator] Setting ds_accelerator to cpu "
      "(override)\n" +
      iterations(8) + "MA 1.0 GB  Max_MA 2.0 GB  CA 1.0 GB  Max_CA 5 GB \n");
  CHECK(c.row("GPU memory allocated, peak") == nullptr);
  CHECK_THAT(to_text(c), Containing("ran on the CPU"));
}

TEST_CASE("JSON has what the text has", "[log]") {
  const auto json = nlohmann::json::parse(to_json(compared(iterations(8) + "time (ms) | x: y\n")));
  CHECK(json["schema"] == "tidegate.log/1");
  CHECK(json["skipped"] == 2);
  CHECK(json["rows"][0]["name"] == "forward");
  CHECK(json["rows"][0]["measured"]["median"] == 1);
  CHECK(json["damaged"][0]["at"] == "run.log:25:16");
}
