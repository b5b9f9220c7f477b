#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// What all programs of bench/ share: process time, and one line of key=value per run.
namespace tidegate::bench {

/// CPU seconds of this process. The machine may be busy, and every program here has one thread.
double cpu_seconds();

struct Result {
  std::string program, mode;
  std::size_t tasks = 0;
  double seconds = 0;   ///< of the run itself
  double makespan = 0;  ///< simulated seconds
};
/// "program=… mode=… tasks=… ns_per_task=… makespan=…" without the end of the line.
std::string line_of(const Result& result);

/// The words of the command line before the first "key=value".
std::vector<std::string> words_of(int argc, char** argv);
/// The value of key=value, or `otherwise`.
std::string option(int argc, char** argv, const std::string& key, const std::string& otherwise);

}  // namespace tidegate::bench
