#include "models/devices.hpp"

namespace tidegate {

StoragePath StoragePath::times(double factor) const {
  StoragePath path = *this;
  for (BytesPerSecond* rate : {&path.read, &path.write, &path.read_mixed, &path.write_mixed,
                               &path.write_sustained, &path.cache_recovery}) {
    *rate *= factor;
  }
  for (Bytes* size : {&path.capacity, &path.cache, &path.block_half_size}) *size *= factor;
  path.endurance_bytes *= factor;
  return path;
}

}  // namespace tidegate
