#include "validate/gpu_times/factors.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "calib/fit/statistics.hpp"
#include "models/base/error.hpp"
#include "sim/report/period.hpp"

namespace tidegate {
namespace {

constexpr std::size_t at(KernelClass kind) { return static_cast<std::size_t>(kind); }

KernelClass class_of(const Kernel& kernel) {
  if (std::holds_alternative<Gemm>(kernel)) return KernelClass::matrix_product;
  return std::holds_alternative<Attention>(kernel) ? KernelClass::attention
                                                   : KernelClass::elementwise;
}

double without_launch(const Gpu& gpu, const Kernel& kernel) {
  const auto* elementwise = std::get_if<Elementwise>(&kernel);
  const double launches = elementwise ? std::max(1, elementwise->launches) : 1;
  return (gpu.alone(kernel) - launches * gpu.launch).value();
}

// How often each work of GPU 0 runs in a steady iteration, by phase.
struct Runs {
  const Compute* compute = nullptr;
  std::array<double, phase_count> times{};
};
std::vector<Runs> runs_of(const Prediction& p) {
  std::vector<Runs> runs(p.plan.works.size());
  const Steady steady = steady_period(iterations_of(p.plan, p.timeline));
  for (std::size_t w = 0; w < runs.size(); ++w) {
    const auto* compute = std::get_if<Compute>(&p.plan.works[w]);
    if (compute && compute->gpu == 0) runs[w].compute = compute;
  }
  for (std::uint32_t t = 0; t < p.plan.size(); ++t) {
    const Task& task = p.plan.tasks[t];
    if (!steady.contains(task.iteration) || is_skipped(p.plan, TaskId{t}, p.timeline)) continue;
    runs[index(task.work)].times[static_cast<std::size_t>(task.phase)] += 1 / steady.iterations();
  }
  return runs;
}

ClassTimes times_on(const Gpu& gpu, const std::vector<Runs>& runs) {
  ClassTimes times{};
  for (const Runs& r : runs) {
    if (!r.compute) continue;
    for (const Kernel& kernel : r.compute->kernels) {
      const double seconds = without_launch(gpu, kernel);
      for (std::size_t p = 0; p < phase_count; ++p)
        times[p][at(class_of(kernel))] += r.times[p] * seconds;
    }
  }
  return times;
}

double median_total(const std::vector<ClassTimes>& steps, KernelClass kind,
                    std::size_t without = ~std::size_t{0}) {
  std::vector<double> totals;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i != without) totals.push_back(total_of(steps[i], kind));
  }
  return calib::median(totals);
}

double median_phase(const std::vector<ClassTimes>& steps, Phase phase, KernelClass kind) {
  std::vector<double> times;
  for (const ClassTimes& s : steps) times.push_back(s[static_cast<std::size_t>(phase)][at(kind)]);
  return calib::median(times);
}

// The scale with which the class takes `wanted` seconds, at most the one that brings all of the
// curve to 1: times fall as efficiencies rise.
template <class TimeAt>
double scale_for(double wanted, const Curve& curve, TimeAt&& time_at) {
  const auto least =
      std::ranges::min_element(curve.points(), {}, &std::pair<double, double>::second);
  double low = 1e-4, high = std::max(1 / least->second, 2 * low);
  for (int i = 0; i < 80; ++i) {
    const double middle = std::sqrt(low * high);
    (time_at(middle) > wanted ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

void check_classes(const GpuTimes& times) {
  double all = 0;
  for (const ClassFit& c : times.classes) all += c.measured;
  const auto wrong = [&](const std::string& text) {
    throw InputError({times.trace.file, 0, 0}, "", text);
  };
  for (const ClassFit& c : times.classes) {
    const bool is_traced = c.measured > 0.01 * all, is_predicted = c.predicted > 0;
    if (is_traced == is_predicted || (!is_traced && c.kind == KernelClass::elementwise)) continue;
    std::string names;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, times.trace.elementwise_names.size()); ++i)
      names += (i > 0 ? ", " : "") + times.trace.elementwise_names[i].first.substr(0, 60);
    const std::string hint =
        c.kind == KernelClass::attention
            ? fmt::format("; set workload.kernels.flash_attention={}", is_traced)
            : std::string();
    if (is_traced)
      wrong(fmt::format("has {} ({:.3g} ms a step), and the scenario has none{}", name_of(c.kind),
                        1e3 * c.measured, hint));
    wrong(
        fmt::format("has no {} that its kernels' names would show, and the scenario has{}; of "
                    "other kernels the longest are {}",
                    name_of(c.kind), hint, names));
  }
}

HeldOut held_out(const std::vector<ClassTimes>& steps, const ClassTimes& predicted,
                 bool has_phases) {
  HeldOut out;
  if (steps.size() > 1) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      double others = 0;
      for (std::size_t c = 0; c < computing_classes; ++c)
        others += median_total(steps, static_cast<KernelClass>(c), i);
      const double error = std::abs(others / computing_of(steps[i]) - 1);
      out.mean += error / static_cast<double>(steps.size());
      out.worst = std::max(out.worst, error);
      ++out.steps;
    }
  }
  if (!has_phases) return out;
  constexpr auto forward = static_cast<std::size_t>(Phase::forward),
                 backward = static_cast<std::size_t>(Phase::backward);
  double expected = 0, measured = 0;
  for (std::size_t c = 0; c < computing_classes; ++c) {
    const auto kind = static_cast<KernelClass>(c);
    if (predicted[forward][c] <= 0) continue;
    expected +=
        predicted[backward][c] * median_phase(steps, Phase::forward, kind) / predicted[forward][c];
    measured += median_phase(steps, Phase::backward, kind);
  }
  out.has_phases = measured > 0;
  if (out.has_phases) out.backward = expected / measured - 1;
  return out;
}

std::array<double, 2> ratios_by_phase(const std::vector<ClassTimes>& steps,
                                      const ClassTimes& predicted, KernelClass kind) {
  std::array<double, 2> ratios{};
  constexpr std::array phases = {Phase::forward, Phase::backward};
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const double p = predicted[static_cast<std::size_t>(phases[i])][at(kind)];
    if (p > 0) ratios[i] = median_phase(steps, phases[i], kind) / p;
  }
  return ratios;
}

}  // namespace

ClassTimes predicted_kernels(const Prediction& prediction, const Machine& machine) {
  return times_on(machine.gpu(0), runs_of(prediction));
}

GpuTimes fit_gpu_times(TracedSteps trace, const ClassTimes& predicted, const Prediction& prediction,
                       const Machine& machine) {
  GpuTimes times{.trace = std::move(trace)};
  const auto& steps = times.trace.steps;
  for (std::size_t c = 0; c < computing_classes; ++c) {
    const auto kind = static_cast<KernelClass>(c);
    times.classes[c] = {.kind = kind,
                        .predicted = total_of(predicted, kind),
                        .measured = median_total(steps, kind)};
    if (times.trace.has_phases) times.classes[c].by_phase = ratios_by_phase(steps, predicted, kind);
  }
  times.collectives = median_total(steps, KernelClass::collective);
  times.copies = median_total(steps, KernelClass::copy);
  check_classes(times);
  times.held_out = held_out(steps, predicted, times.trace.has_phases);
  const std::vector<Runs> runs = runs_of(prediction);
  const Gpu& gpu = machine.gpu(0);
  Scales scales;
  // Memory first: products and attention are bound by it where they are small.
  const auto fit = [&](KernelClass kind, double& scale, const Curve& curve) {
    ClassFit& c = times.classes[at(kind)];
    const auto time_at = [&](double s) {
      scale = s;
      return total_of(times_on(scaled(gpu, scales), runs), kind);
    };
    if (c.predicted > 0 && c.measured > 0) scale = scale_for(c.measured, curve, time_at);
    c.scale = scale;
    c.reached = total_of(times_on(scaled(gpu, scales), runs), kind);
  };
  fit(KernelClass::elementwise, scales.memory, gpu.memory_efficiency);
  fit(KernelClass::matrix_product, scales.product, gpu.gemm_efficiency);
  fit(KernelClass::attention, scales.attention, gpu.attention_efficiency);
  times.overrides = efficiency_overrides(gpu, times);
  return times;
}

}  // namespace tidegate
