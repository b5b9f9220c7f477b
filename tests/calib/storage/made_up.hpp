#pragma once

#include <string>

#include "calib/storage/target.hpp"

/// Small storage set-ups for tests: files of 16 MiB in the build tree.
inline tidegate::calib::Setup small_setup(int paths = 1) {
  using namespace tidegate;
  calib::Setup setup;
  setup.effort = calib::Effort::quick;
  setup.file_size = Bytes(16. * (1 << 20));
  setup.write_budget = Bytes(2.5 * (1 << 30));
  const std::string folder = TIDEGATE_BINARY_DIR;
  for (int i = 0; i < paths; ++i) {
    setup.storage.push_back({"disk" + std::to_string(i), folder, rig::file_system_of(folder)});
  }
  return setup;
}
