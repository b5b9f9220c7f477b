#include "bench/measure.hpp"

#include <time.h>

#include <fmt/core.h>

namespace tidegate::bench {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::string line_of(const Result& r) {
  return fmt::format("program={} mode={} tasks={} ns_per_task={:.1f} makespan={:.12g}", r.program,
                     r.mode, r.tasks, 1e9 * r.seconds / static_cast<double>(r.tasks), r.makespan);
}

std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.find('=') != std::string::npos) break;
    words.push_back(word);
  }
  return words;
}

std::string option(int argc, char** argv, const std::string& key, const std::string& otherwise) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
  }
  return otherwise;
}

}  // namespace tidegate::bench
