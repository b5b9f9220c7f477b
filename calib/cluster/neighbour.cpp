#include "calib/cluster/neighbour.hpp"

#include <fcntl.h>

namespace tidegate::calib {
namespace {

Setup setup_of(std::int64_t size, std::uint64_t seed) {
  Setup setup;
  setup.file_size = Bytes(static_cast<double>(size));
  setup.seed = seed;
  return setup;
}

}  // namespace

OfferedFile::OfferedFile(Target& own, std::int64_t size) : file_(own.path().folder) {
  const auto open = rig::ScratchFile::existing(file_.path(), own.access());
  StreamPlan plan;
  plan.direction = Direction::write;
  plan.other = &open;
  plan.size = plan.most_bytes = size;
  plan.flushes = true;
  stream(own, plan);
}

NeighbourFile::NeighbourFile(const StorageTarget& path, const std::string& name, std::int64_t size,
                             std::uint64_t seed)
    : target_(path, setup_of(size, seed), 1),
      file_(rig::ScratchFile::existing(path.folder + "/" + name, target_.access())),
      size_(size) {}

StreamResult NeighbourFile::read(const StreamPlan& how) {
  if (target_.access() == rig::Access::buffered) {
    posix_fadvise(file_.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
  StreamPlan plan = how;
  plan.direction = Direction::read;
  plan.other = &file_;
  plan.size = size_;
  plan.from = from_;
  StreamResult result = stream(target_, plan);
  from_ = (from_ + result.bytes) % size_;
  return result;
}

}  // namespace tidegate::calib
