#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include <fmt/core.h>

#include "calib/checks/checks.hpp"
#include "calib/rig/io_queue.hpp"
#include "calib/storage/stream.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t mib = 1 << 20;

Seconds since(Clock::time_point start) {
  return Seconds(std::chrono::duration<double>(Clock::now() - start).count());
}

StreamResult read_region(Target& target, std::int64_t at, std::int64_t region) {
  target.cursor(Direction::read) = at;
  return stream(target, {.direction = Direction::read, .most_bytes = region});
}

Check check_written(Target& target, const CheckPlan&) {
  Check worst = written_blocks(target.files()[0], target.file_size());
  for (const rig::ScratchFile& file : target.files()) {
    const Check check = written_blocks(file, target.file_size());
    if (check.verdict == Verdict::suspected) worst = check;
  }
  return worst;
}

Check check_content(Target& target, const CheckPlan& plan) {
  const StreamResult result = read_region(target, 0, plan.region);
  const bool is_right = result.wrong_blocks == 0;
  return {"content", is_right ? Verdict::ok : Verdict::suspected,
          fmt::format("of the last blocks of {} read, {} blocks of 4 KiB are not what was written",
                      to_text(Bytes(static_cast<double>(result.bytes))), result.wrong_blocks)};
}

Check check_page_cache(Target& target, const CheckPlan& plan) {
  read_region(target, 0, plan.region);
  Check check = page_cache(target.files()[0], target.file_size());
  if (!target.why_buffered().empty()) check.evidence += "; " + target.why_buffered();
  return check;
}

Check check_device_bytes(Target& target, const CheckPlan& plan) {
  const std::string& device = target.path().facts.device;
  if (rig::read_system(device).device_read < 0) {
    return {"device_bytes", Verdict::not_told, "no block device behind the path counts its bytes"};
  }
  std::vector<double> ratios;
  for (std::size_t i = 0; i < 3; ++i) {
    const rig::Readings before = rig::read_system(device);
    const StreamResult result =
        read_region(target, static_cast<std::int64_t>(i) * plan.region, plan.region);
    const rig::Readings after = rig::read_system(device);
    ratios.push_back(static_cast<double>(after.device_read - before.device_read) /
                     static_cast<double>(result.bytes));
  }
  return judge_device_bytes(ratios);
}

// A hot region at the start of the file against regions not read since they were written.
Check check_host_cache(Target& target, const CheckPlan& plan) {
  const std::int64_t regions = target.file_size() / plan.region;
  const auto pairs = std::min(plan.pairs, static_cast<std::size_t>(std::max(regions - 1, {})));
  if (pairs < 3) {
    return {"host_cache", Verdict::not_told,
            fmt::format("files of {} are too small to compare regions",
                        to_text(Bytes(static_cast<double>(target.file_size()))))};
  }
  std::vector<double> first, again;
  read_region(target, 0, plan.region);
  for (std::size_t i = 1; i <= pairs; ++i) {
    const auto at = static_cast<std::int64_t>(i) * plan.region;
    first.push_back(read_region(target, at, plan.region).rate());
    again.push_back(read_region(target, 0, plan.region).rate());
  }
  return judge_cache(first, again, plan.region);
}

// Zeros and random bytes over the same blocks, in alternating order.
Check check_compression(Target& target, const CheckPlan& plan) {
  constexpr std::size_t depth = 8;
  const std::int64_t size = std::max(plan.region / 2 / mib, std::int64_t{1}) * mib;
  rig::HostBuffer zero(depth * mib), noise(depth * mib);
  std::ranges::fill(zero.bytes(), std::byte{0});
  target.content().fill(noise.bytes(), 0);
  const rig::ScratchFile file = target.fresh_file();
  const auto write = [&](rig::HostBuffer& bytes) {
    return stream(target, {.direction = Direction::write,
                           .block = mib,
                           .depth = depth,
                           .flushes = true,
                           .other = &file,
                           .size = size,
                           .own_bytes = bytes.bytes()})
        .rate();
  };
  write(noise);  // so that both overwrite
  std::vector<double> zeros, random;
  for (std::size_t i = 0; i < plan.pairs; ++i) {
    if (i % 2 == 0) zeros.push_back(write(zero));
    random.push_back(write(noise));
    if (i % 2 == 1) zeros.push_back(write(zero));
  }
  return judge_compression(zeros, random);
}

Seconds flush_time(const rig::ScratchFile& file) {
  const auto start = Clock::now();
  rig::flush(file);
  return since(start);
}

Check check_flush(Target& target, const CheckPlan& plan) {
  const std::int64_t dirty = std::max(plan.region / 2 / mib, std::int64_t{1}) * mib;
  const rig::ScratchFile cached(target.path().folder, rig::Access::buffered);
  const StreamPlan writes{
      .direction = Direction::write, .depth = 4, .other = &cached, .size = dirty};
  stream(target, writes);
  const Seconds after_cached = flush_time(cached);
  stream(target, {.direction = Direction::write, .most_bytes = dirty});
  const Seconds after_direct = flush_time(target.files()[0]);
  const rig::DeviceFacts device = rig::device_facts(target.path().facts.device);
  return judge_flush(after_cached, dirty, after_direct, target.write_rate(), device.write_cache);
}

Check check_neighbours(Target& target, const CheckPlan&) {
  const std::string& device = target.path().facts.device;
  const rig::Readings before = rig::read_system(device);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return judge_neighbours(rig::foreign(before, rig::read_system(device)), device);
}

// Threads in the place of io_uring cost more for each block: numbers are those of threads then.
Check check_engine(Target&, const CheckPlan&) {
  const auto queue = rig::make_io_queue();
  if (queue->remark().empty()) {
    return {"engine", Verdict::ok, fmt::format("reads and writes by {}", queue->engine())};
  }
  return {"engine", Verdict::suspected,
          fmt::format("reads and writes by {}, so that small blocks are slower than they could be: "
                      "{}",
                      queue->engine(), queue->remark())};
}

Check check_burst(Target& target, const CheckPlan& plan) {
  const StreamResult result =
      stream(target, {.direction = Direction::read, .most_time = plan.burst});
  // Half-second windows, at least twenty where the stream is short.
  const auto windows = std::max(20.0, 2 * plan.burst.value());
  return judge_burst(result.series(static_cast<std::size_t>(windows)), result.elapsed);
}

constexpr std::array table = {
    CheckEntry{"engine", "who moves the bytes: io_uring, or threads where it is refused",
               check_engine},
    CheckEntry{"neighbours", "whether others use cores and drive", check_neighbours},
    CheckEntry{"written", "blocks that were never written", check_written},
    CheckEntry{"host_cache", "reading again against reading first", check_host_cache},
    CheckEntry{"content", "whether what is read is what was written", check_content},
    CheckEntry{"page_cache", "pages of the file in this system's cache", check_page_cache},
    CheckEntry{"device_bytes", "whether the device saw our bytes", check_device_bytes},
    CheckEntry{"flush", "whether a flush reaches the drive", check_flush},
    CheckEntry{"compression", "zeros against random bytes", check_compression},
    CheckEntry{"burst", "a step in the rate of a long stream", check_burst},
};

}  // namespace

CheckPlan check_plan(const Target& target) {
  CheckPlan plan;
  plan.region = std::clamp(target.file_size() / 8 / mib * mib, mib, plan.region);
  return plan;
}

Check written_blocks(const rig::ScratchFile& file, std::int64_t size) {
  const std::int64_t missing = rig::unwritten_bytes(file, size);
  if (missing < 0) {
    return {"written", Verdict::not_told, "the file system does not say which blocks hold data"};
  }
  const auto numbers =
      fmt::format("{} of {} were never written", to_text(Bytes(static_cast<double>(missing))),
                  to_text(Bytes(static_cast<double>(size))));
  if (missing == 0) return {"written", Verdict::ok, numbers};
  return {"written", Verdict::suspected, numbers + ": they are answered without the drive"};
}

Check page_cache(const rig::ScratchFile& file, std::int64_t size) {
  const double part = rig::resident_fraction(file, size);
  const auto numbers = fmt::format("{:.1f} % of the file lies in the page cache", 100 * part);
  if (part <= 0.01) return {"page_cache", Verdict::ok, numbers};
  return {"page_cache", Verdict::suspected, numbers + ": reads may come from memory"};
}

std::span<const CheckEntry> storage_checks() { return table; }

std::vector<Check> run_checks(Target& target, const CheckPlan& plan) {
  ensure(target.is_prepared(), "checks look at files that were written");
  std::vector<Check> checks;
  for (const CheckEntry& entry : table) {
    checks.push_back(entry.run(target, plan));
    checks.back().name = target.path().name + "." + checks.back().name;
  }
  return checks;
}

}  // namespace tidegate::calib
