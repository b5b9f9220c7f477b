#include "validate/engine/watch.hpp"

#include <algorithm>

#include "calib/rig/file.hpp"

namespace tidegate {

Watch::Watch(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::string device = rig::file_system_of(folder).device;
    if (!device.empty() && std::ranges::find(devices_, device) == devices_.end()) {
      devices_.push_back(device);
    }
  }
  own_ = rig::own_traffic();
  before_ = now();
}

rig::Readings Watch::now() const {
  rig::Readings sum = rig::read_system();
  for (const std::string& device : devices_) {
    const rig::Readings one = rig::read_system(device);
    if (one.device_read < 0) continue;
    sum.device_read = std::max<std::int64_t>(sum.device_read, 0) + one.device_read;
    sum.device_written = std::max<std::int64_t>(sum.device_written, 0) + one.device_written;
  }
  return sum;
}

// Without a count of our own traffic nothing is known of that of others.
rig::Foreign Watch::so_far() const {
  rig::Readings after = now();
  const rig::Traffic own = rig::own_traffic();
  if (own.read < 0 || own_.read < 0) after.device_read = after.device_written = -1;
  return rig::foreign(before_, after, own.read - own_.read, own.written - own_.written);
}

}  // namespace tidegate
