#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/sim/policy/meaning.hpp"
#include "validate/execute/training_run.hpp"

/// Plans of tiny networks, trained by the executor in the system's folder for temporary files.
namespace tidegate::executed {

inline Rig rig_of(const meant::Run& run) {
  return {.machine = run.scenario.machine,
          .pace = Pace::native,
          .folders = std::vector<std::string>(run.scenario.machine.paths().size(),
                                              std::filesystem::temp_directory_path().string())};
}

/// As many steps as the plan has, from the beginning.
inline train::TrainingOptions options_of(const meant::Run& run) {
  return {.seed = 3,
          .steps = run.plan.iterations,
          .ranks = run.plan.ranks / run.scenario.workload.pipeline_parallel,
          .adam = {.rate = 1e-2F},
          .update = run.plan.meaning.update,
          .reduces_every_micro_step = run.scenario.policy.zero.stage >= 2};
}

}  // namespace tidegate::executed
