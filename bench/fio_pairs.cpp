// Our streams and fio's on the same file, in interleaved pairs: does the rig measure what the
// field's own tool measures?
//
//   fio_pairs FOLDER [file size in MiB = 1024] [pairs = 6] [seconds = 2]
//
// fio opens our file, which has no name, through /proc: the same blocks from the same start, direct
// access, io_uring, block size and depth. Both move them into and out of the same memory, one file
// of memory that either maps: how many contiguous pieces a block of small pages has is drawn when
// memory is touched, and decides more than all else (bench/README.md). The order within a pair
// alternates. Printed are the medians, the ratio's median and its distribution-free interval, the
// pieces of a block, what our streams reach in memory of their own beside that, in pages of 4 KiB
// and of 2 MiB, and how busy others were.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/core.h>

#include "calib/fit/statistics.hpp"
#include "calib/rig/readings.hpp"
#include "calib/storage/stream.hpp"
#include "models/base/error.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

constexpr std::int64_t kib = 1 << 10, mib = 1 << 20;

std::string output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  ensure(pipe != nullptr, "a pipe opens");
  std::string text;
  std::array<char, 4096> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  if (pclose(pipe) != 0) throw MachineError("fio failed: " + command + "\n" + text);
  return text;
}

// fio(1), terse version 3: fields between semicolons, bandwidth in KiB/s in the 7th of reads and
// the 48th of writes.
double terse_rate(const std::string& text, Direction direction) {
  const int field = direction == Direction::read ? 7 : 48;
  std::size_t at = text.rfind("3;fio");
  for (int i = 1; i < field && at != std::string::npos; ++i) at = text.find(';', at) + 1;
  if (at == std::string::npos) throw MachineError("fio's output is not understood: " + text);
  return 1024 * std::strtod(text.c_str() + at, nullptr);
}

struct Job {
  Direction direction;
  std::int64_t block;
  std::size_t depth;
};

// Memory that another process can map: of the kernel's files, in pages of 4 KiB.
class SharedMemory {
 public:
  // fio aligns what it takes; it maps and cuts the file to a few pages more than its blocks.
  explicit SharedMemory(std::size_t bytes)
      : size_(bytes + 16 * kib), descriptor_(memfd_create("blocks", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) fail();
    at_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (at_ == MAP_FAILED) fail();
    bytes_ = {static_cast<std::byte*>(at_), bytes};
  }
  ~SharedMemory() {
    munmap(at_, size_);
    close(descriptor_);
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }
  std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), descriptor_); }

 private:
  [[noreturn]] static void fail() { throw MachineError("memory to share is not to be had"); }
  std::size_t size_;
  int descriptor_;
  void* at_ = nullptr;
  std::span<std::byte> bytes_;
};

// Physically contiguous pieces of a block, on average; 0 where only root is told (proc(5),
// /proc/PID/pagemap: the frame is the low 55 bits of an entry).
double pieces(std::span<const std::byte> memory, std::size_t block) {
  constexpr std::size_t page = 4096;
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  std::size_t count = 0;
  std::uint64_t before = 0;
  for (std::size_t at = 0; at < memory.size(); at += page) {
    std::uint64_t entry = 0;
    const auto number = reinterpret_cast<std::uintptr_t>(memory.data() + at) / page;
    const auto place = static_cast<off_t>(number * sizeof(entry));
    if (pread(pagemap, &entry, sizeof(entry), place) != ssize_t{sizeof(entry)}) entry = 0;
    const std::uint64_t frame = entry & ((std::uint64_t{1} << 55) - 1);
    if (frame == 0) {
      count = 0;
      break;
    }
    if (at % block == 0 || frame != before + 1) ++count;
    before = frame;
  }
  close(pagemap);
  return static_cast<double>(count) * static_cast<double>(block) /
         static_cast<double>(memory.size());
}

StreamPlan plan_of(const Job& job, double seconds) {
  StreamPlan plan;
  plan.direction = job.direction;
  plan.block = job.block;
  plan.depth = job.depth;
  plan.most_time = Seconds(seconds);
  plan.verifies = false;  // fio writes what it likes
  return plan;
}

double ours(Target& target, const StreamPlan& plan) {
  target.cursor(plan.direction) = 0;  // as fio begins
  return stream(target, plan).rate();
}

double fio(const Target& target, const Job& job, double seconds, const SharedMemory& memory) {
  const std::string command = fmt::format(
      "fio --name=pair --filename=/proc/{}/fd/{} --size={} --rw={} --bs={} --iodepth={} "
      "--direct={} --mem=mmapshared:{} "
      "--ioengine=io_uring --time_based --runtime={:.0f}ms --allow_file_create=0 --overwrite=1 "
      "--output-format=terse --terse-version=3",
      getpid(), target.files()[0].descriptor(), target.file_size(),
      job.direction == Direction::read ? "read" : "write", job.block, job.depth,
      target.access() == rig::Access::direct ? 1 : 0, memory.path(), 1000 * seconds);
  return terse_rate(output_of(command), job.direction);
}

void compare(Target& target, const Job& job, int pairs, double seconds) {
  using Pages = rig::HostBuffer::Pages;
  const std::size_t under_way = static_cast<std::size_t>(job.block) * job.depth;
  const SharedMemory memory(under_way);
  target.content().fill(memory.bytes(), 0);
  StreamPlan same = plan_of(job, seconds), own = same, huge = same;
  same.own_bytes = memory.bytes();
  own.pages = Pages::usual;
  huge.pages = Pages::huge;
  std::vector<double> us, them, ratio, in_own, in_huge;
  const std::string& device = target.path().facts.device;
  const rig::Readings before = rig::read_system(device);
  for (int i = 0; i < pairs; ++i) {
    const bool is_first = i % 2 == 0;
    if (is_first) us.push_back(ours(target, same));
    them.push_back(fio(target, job, seconds, memory));
    if (!is_first) us.push_back(ours(target, same));
    ratio.push_back(us.back() / them.back());
    in_own.push_back(ours(target, own) / us.back());
    in_huge.push_back(ours(target, huge) / us.back());
  }
  const Interval interval = median_interval(ratio);
  const rig::Foreign others = rig::foreign(before, rig::read_system(device));
  fmt::print(
      "{:5} {:8} x {:2}  ours {:>10}  fio {:>10}  ratio {:.3f} [{:.3f}, {:.3f}]  pieces {:4.1f}  "
      "own memory {:.2f}  huge pages {:.2f}  others {:.2f} cores\n",
      job.direction == Direction::read ? "read" : "write",
      to_text(Bytes(static_cast<double>(job.block))), job.depth,
      to_text(BytesPerSecond(median(us))), to_text(BytesPerSecond(median(them))), median(ratio),
      interval.low, interval.high,
      pieces(memory.bytes(), static_cast<std::size_t>(std::min(job.block, 128 * kib))),
      median(in_own), median(in_huge), others.cores);
  std::fflush(stdout);
}

double argument(int count, char** values, int index, double otherwise) {
  return index < count ? std::strtod(values[index], nullptr) : otherwise;
}

}  // namespace

int main(int count, char** values) {
  if (count < 2) {
    fmt::print(stderr, "fio_pairs FOLDER [file size in MiB] [pairs] [seconds]\n");
    return 2;
  }
  try {
    Setup setup;
    setup.file_size = Bytes(argument(count, values, 2, 1024) * mib);
    setup.write_budget = Bytes(1e12);  // this program is asked for by hand
    Target target({"pair", values[1], rig::file_system_of(values[1])}, setup, 1);
    target.prepare();
    const int pairs = static_cast<int>(argument(count, values, 3, 6));
    const double seconds = argument(count, values, 4, 2);
    if (!target.why_buffered().empty()) fmt::print("buffered: {}\n", target.why_buffered());
    for (const Direction direction : {Direction::read, Direction::write}) {
      for (const auto& [block, depth] :
           {std::pair{128 * kib, 1}, std::pair{128 * kib, 16}, std::pair{mib, 1},
            std::pair{mib, 16}, std::pair{4 * mib, 4}}) {
        compare(target, {direction, block, static_cast<std::size_t>(depth)}, pairs, seconds);
      }
    }
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
  }
}
