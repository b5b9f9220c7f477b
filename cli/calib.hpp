#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tidegate {

struct CalibFlags {
  std::vector<std::string> storage, only, shared, local;
  std::string out, write_budget, file_size, sustained, gpu;
  std::int32_t gpus = 1, threads = 0, passes = 0;
  std::uint64_t seed = 7;
  bool quick = false, full = false, resume = false, dry_run = false, identify = false, json = false;
  bool node_per_rank = false, ungated = false;
  std::string command;    ///< as given
  char** argv = nullptr;  ///< to start again in another environment
  std::string show, html;
  std::vector<std::string> diff;
};

/// The command `calib`, with `show` and `diff`.
void add_calib(CLI::App& app, CalibFlags& flags, int& code);

}  // namespace tidegate
