#include "calib/cuda/timing.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace tidegate::cuda {

Cut cut_for(Seconds target, Seconds one, int most) {
  const double operations = one.value() > 0 ? target / one : 1e9;
  Cut cut;
  cut.operations = static_cast<int>(std::clamp(std::ceil(operations), 1.0, 1.0 * most));
  cut.rounds = static_cast<int>(std::clamp(std::round(operations / cut.operations), 1.0, 1000.0));
  return cut;
}

double abba(Seconds alone1, Seconds beside1, Seconds beside2, Seconds alone2) {
  return (alone1 + alone2) / (beside1 + beside2);
}

std::string slowed(const ClockReading& reading, double default_clock, Needs needs) {
  constexpr std::uint64_t hardware = hardware_slowdown | hardware_thermal_slowdown | power_brake;
  if (needs == Needs::link) {
    if ((reading.reasons & hardware) == 0) return "";
    return "GPU slowed down: " + reasons_text(reading.reasons & hardware);
  }
  if (default_clock <= 0 || reading.sm >= 0.75 * default_clock) return "";
  return fmt::format("SM clock at {:.0f} % of default: {}", 100 * reading.sm / default_clock,
                     reasons_text(reading.reasons));
}

double all_reduce_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }
double gather_factor(int ranks) { return 1.0 * (ranks - 1) / ranks; }

}  // namespace tidegate::cuda
