#pragma once

#include <string>
#include <vector>

#include "bench/loads.hpp"

/// A load replayed by SimGrid (S4U): another implementation of max-min sharing, written by others.
/// Network model CM02 with factors 1, latency 0 and no cross traffic is plain max-min.
namespace tidegate::bench {

enum class Style {
  on_demand,  ///< an activity is created when its last predecessor ends: SimGrid's fastest way
  actors,     ///< one actor per stream with blocking calls
};
enum class Updates { lazy, full };  ///< SimGrid's network/optim and cpu/optim

struct Replay {
  std::vector<double> end;   ///< by task, seconds
  double seconds = 0;        ///< CPU time of the run
  double setup_seconds = 0;  ///< of building the platform and what is there before the run
  double makespan = 0;
};

/// At most once per process: SimGrid's engine is a singleton. End the process with std::_Exit.
Replay replay(const Load& load, Style style, Updates updates);

}  // namespace tidegate::bench
