#pragma once

#include <string>

namespace tidegate {

/// The four principles of MLP-Offload switched on one after the other, from one path with nothing
/// to the full system of the scenario at `path`; times of each phase and the speed-up over the
/// first line.
std::string ablation_text(const std::string& path);

}  // namespace tidegate
