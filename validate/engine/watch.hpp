#pragma once

#include <string>
#include <vector>

#include "calib/rig/readings.hpp"

namespace tidegate {

/// What others do on this machine, and on the block devices behind some folders, from its making
/// on. Our own traffic is what the system counts of this process.
class Watch {
 public:
  explicit Watch(const std::vector<std::string>& folders);
  rig::Foreign so_far() const;

 private:
  std::vector<std::string> devices_;  // each once
  rig::Readings before_;
  rig::Traffic own_;

  rig::Readings now() const;
};

}  // namespace tidegate
