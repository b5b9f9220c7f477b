// Stands for io_ring.cpp in builds without liburing.
#include "calib/rig/io_transfer.hpp"

namespace tidegate::rig::detail {

std::unique_ptr<IoQueue> make_ring(const IoOptions&, std::string& why_not) {
  why_not = "io_uring is not to be had: built without liburing";
  return nullptr;
}

}  // namespace tidegate::rig::detail
