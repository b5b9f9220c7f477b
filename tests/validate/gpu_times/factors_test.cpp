#include "validate/gpu_times/factors.hpp"

#include <cmath>

#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;

namespace {

struct Case {
  Scenario scenario;
  Prediction prediction;
  ClassTimes predicted;
};

Case predicted_case(const std::vector<Override>& overrides = {}) {
  const test::TemporaryFolder folder;
  const std::string path =
      folder.write("s.yaml",
                   "workload: {network: {layers: 4, hidden: 2048, heads: 16, vocabulary: 32000}, "
                   "sequence: 2048, "
                   "micro_batch: 2}\nhardware: workstation_rtx4090\npolicy: {}\niterations: 3\n");
  Scenario scenario = load_scenario(path, overrides);
  Prediction prediction = predict(scenario);
  const ClassTimes predicted = predicted_kernels(prediction, scenario.machine);
  return {std::move(scenario), std::move(prediction), predicted};
}

ClassTimes times(const ClassTimes& of, double products, double attention, double elementwise) {
  ClassTimes scaled = of;
  for (auto& phase : scaled) {
    phase[0] *= products;
    phase[1] *= attention;
    phase[2] *= elementwise;
  }
  return scaled;
}

GpuTimes fitted(const Case& c, std::vector<ClassTimes> steps) {
  TracedSteps trace{.file = "trace.json", .steps = std::move(steps), .has_phases = true};
  return fit_gpu_times(std::move(trace), c.predicted, c.prediction, c.scenario.machine);
}

}  // namespace

TEST_CASE("kernel times of a prediction are its compute without gaps", "[gpu_times]") {
  const Case c = predicted_case();
  // Only kernels run on this GPU: its compute works, less a launch for every kernel.
  double all = 0, launches = 0;
  const Gpu& gpu = c.scenario.machine.gpu(0);
  for (const Task& task : c.prediction.plan.tasks) {
    const auto* compute = std::get_if<Compute>(&c.prediction.plan.works[index(task.work)]);
    if (!compute || task.iteration != 2) continue;
    for (const Kernel& kernel : compute->kernels) {
      all += gpu.alone(kernel).value();
      const auto* e = std::get_if<Elementwise>(&kernel);
      launches += e ? std::max(1, e->launches) : 1;
    }
  }
  CHECK(computing_of(c.predicted) == Approx(all - launches * gpu.launch.value()));
}

TEST_CASE("with the scaled curves the prediction takes what the trace took", "[gpu_times]") {
  const Case c = predicted_case();
  // Products 1.25, attention 1.5, elementwise 2 times as long as the profile says.
  const GpuTimes t = fitted(c, {times(c.predicted, 1.25, 1.5, 2)});
  CHECK(t.classes[0].factor() == Approx(1.25));
  CHECK(t.classes[1].by_phase[0] == Approx(1.5));
  CHECK(t.classes[2].by_phase[1] == Approx(2));
  // Elementwise kernels are all traffic: half the efficiency.
  CHECK(t.classes[2].scale == Approx(0.5));
  const Case again = predicted_case(t.overrides);
  for (std::size_t k = 0; k < computing_classes; ++k) {
    const auto kind = static_cast<KernelClass>(k);
    CHECK(total_of(again.predicted, kind) == Approx(t.classes[k].measured).epsilon(1e-6));
  }
}

TEST_CASE("scaled values are assumptions that say what was done", "[gpu_times]") {
  const Case c = predicted_case();
  const GpuTimes t = fitted(c, {times(c.predicted, 1.25, 1.5, 2)});
  REQUIRE(t.overrides.size() == 3);
  const Case again = predicted_case(t.overrides);
  std::string all;
  for (const std::string& a : again.prediction.report.facts.assumptions) all += a + "\n";
  CHECK_THAT(all, Containing("gpus.memory_efficiency"));
  CHECK_THAT(all, Containing("so that elementwise kernels take what they take in trace.json"));
}

TEST_CASE("a time that no efficiency gives is said, and the rest stays right", "[gpu_times]") {
  const Case c = predicted_case();
  const GpuTimes t = fitted(c, {times(c.predicted, 1.25, 1.5, 0.01)});
  CHECK(t.classes[2].reached > 2 * t.classes[2].measured);
  CHECK(t.classes[0].reached == Approx(t.classes[0].measured).epsilon(1e-6));
  std::string all;
  for (const std::string& note : notes_of(t)) all += note + "\n";
  CHECK_THAT(all, Containing("at full efficiency they take"));
}

TEST_CASE("steps are held out one by one, and backward against forward", "[gpu_times]") {
  const Case c = predicted_case();
  // Three steps, 1, 1 and 1.1 times as long. From the others' medians (1.05, 1.05, 1):
  // 5 %, 5 % and 1 / 1.1 - 1 = -9.09 %; mean 6.36 %.
  const GpuTimes t = fitted(c, {times(c.predicted, 1, 1, 1), times(c.predicted, 1, 1, 1),
                                times(c.predicted, 1.1, 1.1, 1.1)});
  CHECK(t.held_out.steps == 3);
  CHECK(t.held_out.worst == Approx(1 - 1 / 1.1));
  CHECK(t.held_out.mean == Approx((0.05 + 0.05 + 1 - 1 / 1.1) / 3));
  CHECK(t.held_out.backward == Approx(0).margin(1e-9));
  // Backward twice as long as forward's factors say: half of it is predicted.
  ClassTimes slow = c.predicted;
  for (double& s : slow[static_cast<std::size_t>(Phase::backward)]) s *= 2;
  CHECK(fitted(c, {slow}).held_out.backward == Approx(-0.5));
}

TEST_CASE("operators of the trace and of the scenario must be the same kinds", "[gpu_times]") {
  const Case c = predicted_case();
  CHECK_THROWS_WITH(fitted(c, {times(c.predicted, 1, 0, 1)}), Containing("flash_attention=false"));
  CHECK_THROWS_WITH(fitted(c, {times(c.predicted, 0, 1, 1)}),
                    Containing("no matrix products that its kernels' names would show"));
  const Case unfused = predicted_case({{"workload.kernels.flash_attention", "false"}});
  ClassTimes flash = unfused.predicted;
  flash[0][1] = computing_of(unfused.predicted);
  CHECK_THROWS_WITH(fitted(unfused, {flash}), Containing("flash_attention=true"));
}
