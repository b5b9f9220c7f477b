#pragma once

#include <memory>

#include "validate/engine/direct_files.hpp"

namespace tidegate {

/// Files to and from GPU memory by cuFile, whose driver is opened when it is first asked for; what
/// counts is the driver nvidia-fs. This has not run on a GPU yet.
std::shared_ptr<DirectFiles> cuda_files();

}  // namespace tidegate
