#pragma once

#include <map>
#include <string>

#include "sim/report/report.hpp"

namespace tidegate {

/// What a report says that can be compared, by name, in base units:
///
///   iteration, forward, backward, update    of the steady iterations; with first_: of the first
///   gpu_peak, host_peak                     steady peaks of GPU 0 and of the host
///   gpu_reserved                            what the framework's allocator holds of GPU 0
///   activation_peak                         gpu_peak less parameters and optimizer states:
///                                           SSDTrain's measure, in which gradients and temporaries
///                                           count
///   offloaded                               bytes that leave GPU 0 for host memory or storage
///   stored                                  bytes written to all storage paths of the node
///   write_bandwidth                         with which `offloaded` has left in half of forward and
///                                           backward: SSDTrain's measure of what drives must reach
std::map<std::string, double> predicted_quantities(const Report& report);

}  // namespace tidegate
