#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common.hpp"

namespace tidegate {

/// `validate run --train`.
struct TrainFlags {
  bool train = false, threads = false;
  std::int64_t steps = 10, every = 0;
  std::string checkpoint, resume;
};
void add_train_flags(CLI::App& run, TrainFlags& flags);

/// The exit code: 1 when training under the plan is not that without.
int train_command(const ScenarioFlags& from, const std::vector<std::string>& storage,
                  const TrainFlags& flags, bool on_gpu, std::uint64_t seed,
                  const std::string& trace, bool is_json);

}  // namespace tidegate
