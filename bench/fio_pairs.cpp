// Our streams and fio's on the same file, in interleaved pairs: does the rig measure what the
// field's own tool measures?
//
//   fio_pairs FOLDER [file size in MiB = 1024] [pairs = 6] [seconds = 2]
//
// fio opens our file, which has no name, through /proc: the same blocks, direct access, io_uring,
// block size and depth, memory in pages of 4 KiB on both sides. The order within a pair alternates.
// Printed are the medians, the ratio's median and its distribution-free interval, what huge pages
// give beside small ones, and how busy others were.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

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

struct Row {
  Direction direction;
  std::int64_t block;
  std::size_t depth;
};

double ours(Target& target, const Row& row, double seconds, rig::HostBuffer::Pages pages) {
  StreamPlan plan;
  plan.direction = row.direction;
  plan.block = row.block;
  plan.depth = row.depth;
  plan.most_time = Seconds(seconds);
  plan.verifies = false;  // fio writes what it likes
  plan.pages = pages;
  return stream(target, plan).rate();
}

double fio(const Target& target, const Row& row, double seconds) {
  const std::string command = fmt::format(
      "fio --name=pair --filename=/proc/{}/fd/{} --size={} --rw={} --bs={} --iodepth={} "
      "--direct={} "
      "--ioengine=io_uring --time_based --runtime={:.0f}ms --allow_file_create=0 --overwrite=1 "
      "--output-format=terse --terse-version=3",
      getpid(), target.files()[0].descriptor(), target.file_size(),
      row.direction == Direction::read ? "read" : "write", row.block, row.depth,
      target.access() == rig::Access::direct ? 1 : 0, 1000 * seconds);
  return terse_rate(output_of(command), row.direction);
}

void compare(Target& target, const Row& row, int pairs, double seconds) {
  using Pages = rig::HostBuffer::Pages;
  std::vector<double> us, them, ratio, huge;
  const std::string& device = target.path().facts.device;
  const rig::Readings before = rig::read_system(device);
  for (int i = 0; i < pairs; ++i) {
    const bool is_first = i % 2 == 0;
    if (is_first) us.push_back(ours(target, row, seconds, Pages::usual));
    them.push_back(fio(target, row, seconds));
    if (!is_first) us.push_back(ours(target, row, seconds, Pages::usual));
    ratio.push_back(us.back() / them.back());
    huge.push_back(ours(target, row, seconds, Pages::huge) / us.back());
  }
  const Interval interval = median_interval(ratio);
  const rig::Foreign others = rig::foreign(before, rig::read_system(device));
  fmt::print(
      "{:5} {:8} x {:2}  ours {:>10}  fio {:>10}  ratio {:.3f} [{:.3f}, {:.3f}]  huge pages {:.2f} "
      " "
      "others {:.2f} cores\n",
      row.direction == Direction::read ? "read" : "write",
      to_text(Bytes(static_cast<double>(row.block))), row.depth,
      to_text(BytesPerSecond(median(us))), to_text(BytesPerSecond(median(them))), median(ratio),
      interval.low, interval.high, median(huge), others.cores);
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
