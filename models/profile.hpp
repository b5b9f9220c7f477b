#pragma once

#include <string>
#include <vector>

#include "models/base/yaml.hpp"
#include "models/machine.hpp"

/// hw_profiles/*.yaml: components (gpu, drive, file_system, host, link, network) and nodes composed from
/// them. Every value is written {value: 24.6 GB/s, source: "…"} or {value: …, assumed: "why"}, with an
/// optional uncertainty: 5 %.
namespace tidegate {

/// Reads a node profile. Component paths are relative to the file. `overrides` are (dotted key, text)
/// pairs applied before reading ("gpus.count", "2"). Throws InputError with all problems.
Machine load_machine(const std::string& path,
                     const std::vector<std::pair<std::string, std::string>>& overrides = {});

}  // namespace tidegate
