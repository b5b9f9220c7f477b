#include "sim/run/rok.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

using namespace tidegate;
using nlohmann::json;

namespace {

const std::string scenarios = std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/";
const std::string llama = scenarios + "llama31_8b_h200.yaml";
// One H200 holds a small Llama with all its states.
const std::vector<Override> small = {{"ranks", "1"},
                                     {"workload.sequence", "2048"},
                                     {"workload.accumulation", "1"},
                                     {"policy.zero.stage", "0"},
                                     {"workload.config", "configs/llama-2-7b.json"}};

const RokPlot::Curve& curve(const RokPlot& plot, const std::string& name) {
  const auto at = std::ranges::find(plot.curves, name, &RokPlot::Curve::name);
  REQUIRE(at != plot.curves.end());
  return *at;
}

}  // namespace

TEST_CASE("keeping needs the most memory and is the fastest, full recomputation the contrary",
          "[rok]") {
  const RokPlot plot = rok_plot(scenario_source(llama), small, {.micro_batches = {4, 8, 16}});
  const auto &keep = curve(plot, "keep"), &full = curve(plot, "recompute full"),
             &selective = curve(plot, "recompute selective");
  for (std::size_t i = 0; i < 3; ++i) {
    INFO(keep.points[i].micro_batch);
    CHECK(full.points[i].activation_peak < keep.points[i].activation_peak);
    CHECK(selective.points[i].activation_peak <= keep.points[i].activation_peak);
    CHECK(full.points[i].activation_peak < selective.points[i].activation_peak);
    // Backward is twice a forward: with every block's forward again, a step is at most 4 / 3.
    const double ratio = keep.points[i].throughput / full.points[i].throughput;
    CHECK(ratio > 1.1);
    CHECK(ratio <= 4.0 / 3);
    CHECK(selective.points[i].throughput <= keep.points[i].throughput);
    CHECK(selective.points[i].throughput >= full.points[i].throughput);
  }
}

TEST_CASE("activations are in proportion to the micro-batch", "[rok]") {
  // Of a single GPU in stage 0, at the start of backward: gradients have hardly come, all else is
  // in proportion. (With a micro-batch of 1 the peak is at the end of backward, and all gradients.)
  const RokPlot plot =
      rok_plot(scenario_source(llama), small, {.policies = {"keep"}, .micro_batches = {4, 8, 16}});
  const auto& p = plot.curves.at(0).points;
  const auto above = [&](std::size_t a, std::size_t b) {
    return (p[b].activation_peak - p[a].activation_peak).value();
  };
  CHECK(above(1, 2) == Approx(2 * above(0, 1)));
}

TEST_CASE("the room is what parameters and optimizer states leave", "[rok]") {
  // 6738415616 parameters, 2 B each and 12 B of states.
  const RokPlot plot =
      rok_plot(scenario_source(llama), small, {.policies = {"keep"}, .micro_batches = {1}});
  const Scenario scenario = load_scenario(llama, small);
  const Gpu& gpu = scenario.machine.gpu(0);
  CHECK(plot.room.value() == Approx((gpu.memory - gpu.context).value() - 14 * 6738415616.0));
}

TEST_CASE("a curve ends with the first size that does not fit", "[rok]") {
  const RokPlot plot = rok_plot(scenario_source(llama), small);
  for (const RokPlot::Curve& c : plot.curves) {
    INFO(c.name);
    REQUIRE(!c.points.empty());
    for (std::size_t i = 0; i < c.points.size(); ++i) {
      CHECK(c.points[i].micro_batch == std::int64_t{1} << i);
      // On the GPU alone: a point fits exactly when its peak is within the room.
      CHECK(c.points[i].fits() == (c.points[i].activation_peak <= plot.room));
      CHECK(c.points[i].fits() == (i + 1 < c.points.size()));
    }
  }
}

TEST_CASE("curves are chosen by name, and wrong ones refused", "[rok]") {
  const RokPlot plot =
      rok_plot(scenario_source(llama), small, {.policies = {"full", "keep"}, .micro_batches = {1}});
  REQUIRE(plot.curves.size() == 2);
  CHECK(plot.curves[0].name == "recompute full");
  CHECK(plot.curves[0].policy == "full recomputation");
  CHECK(plot.curves[1].name == "keep");
  CHECK_THROWS_WITH(rok_plot(scenario_source(llama), small, {.policies = {"kept"}}),
                    Containing("there are: keep, full, selective"));
  CHECK_THROWS_AS(rok_plot(scenario_source(llama), small, {.micro_batches = {0}}), InputError);
}

TEST_CASE("every point is in the text, the JSON and the chart", "[rok]") {
  const RokPlot::Point fits{.micro_batch = 4,
                            .activation_peak = Bytes(2 * 1024.0 * 1024 * 1024),
                            .throughput = FlopsPerSecond(150e12),
                            .tokens_per_second = 1000,
                            .iteration_time = Seconds(2),
                            .overflows = {}};
  RokPlot::Point beyond = fits;
  beyond.micro_batch = 8;
  beyond.activation_peak = 2.0 * beyond.activation_peak;
  beyond.overflows = {"gpu0", "gpu1"};
  const RokPlot plot{.scenario = "s",
                     .profile = "p",
                     .revision = "r",
                     .room = Bytes(3 * 1024.0 * 1024 * 1024),
                     .curves = {{"keep", "kept", {fits, beyond}}}};
  CHECK_THAT(to_text(plot), Containing("2 GiB") && Containing("150 TFLOP/s") && Containing("yes") &&
                                Containing("no: gpu0 and 1 more"));
  const json as_json = json::parse(to_json(plot));
  CHECK(as_json["schema"] == "tidegate.rok/1");
  CHECK(as_json["room_bytes"] == 3221225472);
  CHECK(as_json["curves"][0]["points"][1] == json{{"micro_batch", 8},
                                                  {"activation_peak_bytes", 4294967296},
                                                  {"tflops_per_gpu", 150.0},
                                                  {"tokens_per_s", 1000.0},
                                                  {"iteration_s", 2.0},
                                                  {"fits", false},
                                                  {"overflows", {"gpu0", "gpu1"}}});
  const Chart chart = to_chart(plot);
  REQUIRE(chart.series.size() == 1);
  REQUIRE(chart.series[0].points.size() == 2);
  CHECK(chart.series[0].points[0].x == 2);
  CHECK(chart.series[0].points[0].y == 150);
  CHECK(!chart.series[0].points[0].is_hollow);
  CHECK(chart.series[0].points[1].is_hollow);
  CHECK(chart.limit->x == 3);
  CHECK_THAT(chart.note, Containing("Hollow: does not fit"));
}
