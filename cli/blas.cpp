#include "cli/blas.hpp"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "calib/kernels/kernels.hpp"

namespace tidegate {

void use_blas_well(char** argv) {
  const std::string remedy = cpu::blas_remedy();
  const std::size_t equals = remedy.find('=');
  if (equals == std::string::npos || argv == nullptr) return;
  const std::string name = remedy.substr(0, equals);
  if (std::getenv(name.c_str()) != nullptr) return;
  setenv(name.c_str(), remedy.substr(equals + 1).c_str(), 1);
  execv("/proc/self/exe", argv);  // returns only where it fails; then the BLAS stays as it is
}

void use_blas_well() {
  std::vector<std::string> words;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (!words.empty()) use_blas_well(argv.data());
}

}  // namespace tidegate
