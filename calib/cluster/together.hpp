#pragma once

#include <vector>

#include "calib/cluster/team.hpp"
#include "calib/measure/protocol.hpp"

namespace tidegate::calib {

/// Network rows, measured by all ranks at once through MPI, the same on every rank:
///   net.all_reduce {bytes, ranks}   2 (n-1)/n · bytes / seconds: bus bandwidth of nccl-tests
///   net.send {bytes, peer}          bytes / seconds, one way
///   net.latency {peer}              seconds of 8 bytes, one way
Measurements measure_network(Team& team, std::int32_t passes);

}  // namespace tidegate::calib
