#include "models/base/error.hpp"
#include "validate/cuda/cuda_devices.hpp"
#include "validate/cuda/cuda_training.hpp"

namespace tidegate {
namespace {

constexpr const char* why = "no GPU: built without CUDA";

}  // namespace

Devices cuda_devices() { throw MachineError(why); }

std::unique_ptr<train::Backend> cuda_training() { throw MachineError(why); }

}  // namespace tidegate
