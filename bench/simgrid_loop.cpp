// SimGrid on a synthetic load: simgrid_loop <load> mode=lazy|full|actors
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "bench/measure.hpp"
#include "bench/simgrid_replay.hpp"
#include "models/base/error.hpp"

int main(int argc, char** argv) {
  using namespace tidegate;
  try {
    const bench::Load load = bench::parse_load(bench::words_of(argc, argv));
    const std::string mode = bench::option(argc, argv, "mode", "full");
    const auto style = mode == "actors" ? bench::Style::actors : bench::Style::on_demand;
    const auto updates = mode == "lazy" ? bench::Updates::lazy : bench::Updates::full;
    const bench::Replay replay = bench::replay(load, style, updates);
    fmt::print("{} setup_ns_per_task={:.1f}\n",
               bench::line_of({"simgrid", mode, load.size(), replay.seconds, replay.makespan}),
               1e9 * replay.setup_seconds / static_cast<double>(load.size()));
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  std::fflush(nullptr);
  std::_Exit(0);  // SimGrid's tear-down is not what we time
}
