#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include "calib/rig/file.hpp"
#include "calib/rig/host_buffer.hpp"
#include "calib/rig/io_queue.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::rig;
using namespace tidegate::literals;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t page = 4096;
constexpr std::int64_t size = 64 * page;

/// An empty folder of the build tree, removed afterwards.
struct Folder {
  std::string path = std::string(TIDEGATE_BINARY_DIR) + "/rig_test_folder";
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

Access best_in(const std::string& folder) {
  return why_no_direct_access(folder).empty() ? Access::direct : Access::buffered;
}

void write_all(const ScratchFile& file, std::size_t bytes) {
  HostBuffer buffer(bytes);
  const auto queue = make_io_queue();
  transfer(*queue, Direction::write, file.descriptor(), 0, buffer.bytes(), 16 * page);
}

/// The first folder of /dev/shm kind; empty when the machine has none.
std::string memory_folder() {
  const std::string shm = "/dev/shm";
  if (fs::is_directory(shm) && access(shm.c_str(), W_OK) == 0) return shm;
  WARN("SKIPPED: no writable /dev/shm");
  return "";
}

std::string block_device() {
  for (const auto& entry : fs::directory_iterator("/dev")) {
    if (fs::is_block_file(entry.status())) return entry.path();
  }
  return "";
}

}  // namespace

TEST_CASE("a named file is there for others to open, and goes with its object", "[rig]") {
  const Folder folder;
  const Access access = best_in(folder.path);
  {
    const NamedFile file(folder.path);
    CHECK(fs::is_empty(file.path()));
    CHECK(file.path() == folder.path + "/" + file.name());
    const ScratchFile opened = ScratchFile::existing(file.path(), access);
    write_all(opened, size);
    CHECK(fs::file_size(file.path()) == size);
    const NamedFile other(folder.path);
    CHECK(other.name() != file.name());
  }
  CHECK(fs::is_empty(folder.path));
  CHECK_THROWS_AS(NamedFile(folder.path + "/missing"), MachineError);
  CHECK_THROWS_WITH(ScratchFile::existing(folder.path + "/missing", access),
                    Containing("cannot be opened"));
}

TEST_CASE("a scratch file has no name, whatever happens to the process", "[rig]") {
  const Folder folder;
  const ScratchFile file(folder.path, best_in(folder.path));
  write_all(file, size);
  CHECK_THAT(path_of(file.descriptor()), Containing("(deleted)"));
  CHECK(fs::is_empty(folder.path));
}

TEST_CASE("a moved scratch file is closed once", "[rig]") {
  const Folder folder;
  ScratchFile first(folder.path, Access::buffered);
  const int descriptor = first.descriptor();
  {
    const ScratchFile second(std::move(first));
    CHECK(second.descriptor() == descriptor);
    CHECK(fcntl(descriptor, F_GETFD) >= 0);
  }
  CHECK(fcntl(descriptor, F_GETFD) < 0);
}

TEST_CASE("bytes never written are counted: all, none and a hole", "[rig]") {
  const Folder folder;
  const ScratchFile probe(folder.path, Access::buffered);
  REQUIRE(ftruncate(probe.descriptor(), size) == 0);
  if (unwritten_bytes(probe, size) < 0) {
    WARN("SKIPPED: the file system tells no extents");
    return;
  }
  CHECK(unwritten_bytes(probe, size) == size);  // sparse: a length and no block

  const ScratchFile reserved(folder.path, Access::buffered);
  if (fallocate(reserved.descriptor(), 0, 0, size) == 0) {
    CHECK(unwritten_bytes(reserved, size) == size);  // blocks reserved, none written
  } else {
    WARN("SKIPPED: no fallocate here");
  }
  const ScratchFile full(folder.path, best_in(folder.path));
  write_all(full, size);
  CHECK(unwritten_bytes(full, size) == 0);
  // A hole of 16 pages: 16 · 4096 = 65536.
  constexpr int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (fallocate(full.descriptor(), punch, 8 * page, 16 * page) == 0) {
    CHECK(unwritten_bytes(full, size) == 65536);
  }
}

TEST_CASE("the page cache shows after buffered reads and not after direct ones", "[rig]") {
  const Folder folder;
  if (best_in(folder.path) == Access::buffered) {
    WARN("SKIPPED: " << why_no_direct_access(folder.path));
    return;
  }
  const ScratchFile file(folder.path, Access::direct);
  write_all(file, size);
  HostBuffer bytes(size);
  const auto queue = make_io_queue();
  transfer(*queue, Direction::read, file.descriptor(), 0, bytes.bytes(), page);
  CHECK(resident_fraction(file, size) == 0);
  // The same file through the cache: a second descriptor without O_DIRECT.
  const std::string link = "/proc/self/fd/" + std::to_string(file.descriptor());
  const int buffered = open(link.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(buffered >= 0);
  REQUIRE(pread(buffered, bytes.data(), size, 0) == size);
  close(buffered);
  CHECK(resident_fraction(file, size) == 1);
}

TEST_CASE("flushing a file works, flushing nothing is an error", "[rig]") {
  const Folder folder;
  ScratchFile file(folder.path, Access::buffered);
  write_all(file, size);
  CHECK_NOTHROW(flush(file));
  const ScratchFile taken(std::move(file));
  CHECK_THROWS_AS(flush(file), MachineError);  // NOLINT: the moved-from file has no descriptor
}

TEST_CASE("a memory file system is known as one and gives no direct access", "[rig]") {
  const std::string folder = memory_folder();
  if (folder.empty()) return;
  const FileSystem facts = file_system_of(folder);
  // Where nothing is mounted there, it is a folder of /dev, which is memory as well.
  CHECK((facts.type == "tmpfs" || facts.type == "devtmpfs"));
  CHECK(facts.mount_point == (facts.type == "tmpfs" ? "/dev/shm" : "/dev"));
  CHECK(facts.in_memory);
  CHECK(facts.device.empty());
  CHECK_THAT(why_no_direct_access(folder), Containing("tmpfs is memory"));
  CHECK_THROWS_WITH(ScratchFile(folder, Access::direct), Containing("tmpfs is memory"));
  CHECK_NOTHROW(ScratchFile(folder, Access::buffered));
}

TEST_CASE("a folder's file system says how much is there", "[rig]") {
  const Folder folder;
  const FileSystem facts = file_system_of(folder.path);
  CHECK_FALSE(facts.type.empty());
  CHECK(folder.path.starts_with(facts.mount_point));
  CHECK(facts.total >= facts.available);
  CHECK(facts.total.value() == static_cast<double>(fs::space(folder.path).capacity));
  CHECK(facts.block >= 512_B);
}

TEST_CASE("what is no folder is refused with what would be right", "[rig]") {
  const Folder folder;
  CHECK_THROWS_WITH(file_system_of(folder.path + "/missing"),
                    Containing("No such file") && Containing("give a folder that exists"));
  CHECK_THROWS_WITH(file_system_of("/proc/version"), Containing("not a folder"));
  CHECK_THROWS_AS(ScratchFile("/proc/version", Access::buffered), InputError);
}

TEST_CASE("a block device is refused", "[rig]") {
  const std::string device = block_device();
  if (device.empty()) {
    WARN("SKIPPED: /dev has no block device");
    return;
  }
  CHECK_THROWS_AS(file_system_of(device), InputError);
  CHECK_THROWS_WITH(ScratchFile(device, Access::direct),
                    Containing(device + ": a block device, which is never opened"));
}

TEST_CASE("space is refused before the file system is full", "[rig]") {
  const Folder folder;
  const Bytes there = file_system_of(folder.path).available;
  if (there < 8_GiB) {
    WARN("SKIPPED: less than 8 GiB available");
    return;
  }
  CHECK_NOTHROW(check_space(folder.path, 1_MiB));
  CHECK_THROWS_WITH(check_space(folder.path, there), Containing("write at most"));
  // Half of what is there leaves half: refused when 60 % are to stay.
  CHECK_THROWS_AS(check_space(folder.path, 0.5 * there, 0.6), InputError);
  // Whatever the fraction, 5 GiB stay.
  CHECK_THROWS_AS(check_space(folder.path, there - 4_GiB, 0), InputError);
}
