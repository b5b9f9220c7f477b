#include "models/base/error.hpp"
#include "validate/cuda/cuda_devices.hpp"

namespace tidegate {

Devices cuda_devices() { throw MachineError("no GPU: built without CUDA"); }

}  // namespace tidegate
