#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/report/report.hpp"

/// Which assumptions of the profile a reader of this run should doubt first.
///
/// An assumption begins with its key of the profile, which names a device; its weight is the
/// exposed time of that device's resources, all copies together:
///
///   gpus.h2d, gpus.d2h                  the like
///   gpus.duplex, gpus.copy_half_size    gpu*.h2d and gpu*.d2h
///   gpus.collective_compute_fraction    gpu*.fabric
///   gpus.…                              gpu*.compute and gpu*.hbm
///   host.roots.NAME.…                   NAME.h2d and NAME.d2h
///   host.…                              numa*.cores and numa*.dram
///   fabric.…, network.…                 gpu*.fabric, network
///   paths.NAME.…                        NAME
///
/// Sizes of memories (memory, context, base_use, process_use, capacity) bear on whether a run fits,
/// not on its speed: they weigh nothing, unless a memory of that kind is too small; then they come
/// first. What bears on the life of a drive, and copies of pageable memory, which no policy makes,
/// weigh nothing.
namespace tidegate {

/// At most `most` of the report's assumptions, heaviest first; equal ones in the profile's order.
/// Those without weight are left out.
std::vector<std::string> foremost_assumptions(const Report& report, std::size_t most);

}  // namespace tidegate
