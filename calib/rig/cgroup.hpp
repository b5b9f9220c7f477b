#pragma once

#include <cstdint>

/// The control group that the process lives in. Not for others than calib/rig.
namespace tidegate::rig::detail {

/// Periods in which a CPU quota stopped it so far; -1: not counted.
std::int64_t throttled_periods();
/// The tightest CPU quota in cores, of the group and those above; 0: none.
double quota_cores();

}  // namespace tidegate::rig::detail
