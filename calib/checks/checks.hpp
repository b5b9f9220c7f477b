#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calib/measure/protocol.hpp"
#include "calib/rig/readings.hpp"
#include "calib/storage/target.hpp"

/// Could this number be a lie? Detectors of caches, missing blocks, compression, ignored flushes,
/// throttles and neighbours, each with what it saw. A number without them is not a measurement.
///
/// `suspected` names what the evidence looks like, it does not prove it; `not_told` is said where
/// the system does not count, or where noise is larger than the effect. All thresholds are assumed.
namespace tidegate::calib {

enum class Verdict : std::uint8_t { ok, suspected, not_told };
const char* name_of(Verdict verdict);

struct Check {
  std::string name;
  Verdict verdict = Verdict::not_told;
  std::string evidence;  ///< with the numbers
};

/// Sizes of the experiments.
struct CheckPlan {
  std::int64_t region = std::int64_t{64} << 20;  ///< bytes that one reading or writing moves
  std::size_t pairs = 5;                         ///< interleaved comparisons
  Seconds burst{10};                             ///< length of the search for a change of rate
};
/// Regions of an eighth of the file, 64 MiB at most.
CheckPlan check_plan(const Target& target);

struct CheckEntry {
  std::string_view name, help;
  Check (*run)(Target& target, const CheckPlan& plan);
};
/// Experiments on a storage path, in the order in which they are best run: right after the target
/// was prepared, since a region that was read before is not read for the first time. A cache that
/// holds all that was just written cannot be seen from inside; only a ceiling tells it.
std::span<const CheckEntry> storage_checks();
std::vector<Check> run_checks(Target& target, const CheckPlan& plan);

/// What only a file can show; used by the experiments, and usable on any scratch file.
///
/// Blocks never written read fast and false: any of them is suspected.
Check written_blocks(const rig::ScratchFile& file, std::int64_t size);
/// Pages of the file in this system's page cache: suspected above 1 %.
Check page_cache(const rig::ScratchFile& file, std::int64_t size);

/// Judgements of numbers, however taken.
///
/// Rates of regions read for the first time and of one region read again, interleaved: suspected
/// when reading again is more than 1.2 times as fast, and faster in all pairs.
Check judge_cache(std::span<const double> first, std::span<const double> again,
                  std::int64_t region);
/// Rates at which clients of a shared file system read their own files and those of others, pass by
/// pass: suspected as above.
Check judge_client_cache(std::span<const double> own, std::span<const double> other);
/// Bytes that the device counted over bytes that we moved, several times: suspected when the median
/// lies outside 0.98 to 1.05.
Check judge_device_bytes(std::span<const double> ratios);
/// Rates of writing zeros and random bytes, interleaved: suspected above 1.1 in the median, and
/// more than 1 in all pairs.
Check judge_compression(std::span<const double> zeros, std::span<const double> random);
/// Time of a flush of `dirty` bytes that lay in the page cache, and of one after direct writes.
/// Suspected when the dirty bytes would have gone out at more than five times the rate of direct
/// writes, or when a drive with a write-back cache takes less than 5 µs (assumed: less than any
/// command to a drive).
Check judge_flush(Seconds after_cached, std::int64_t dirty, Seconds after_direct,
                  BytesPerSecond write_rate, const std::string& write_cache);
/// Rates over equal parts of a long stream: suspected when there is a change point between levels
/// that differ by more than 20 %.
Check judge_burst(std::span<const double> series, Seconds length);
/// What the system counted over the run: suspected for steal above 2 % of the cores' time or any
/// period in which a quota stopped us.
Check judge_processors(const rig::Readings& before, const rig::Readings& after);
/// Suspected when others kept more than 0.25 cores busy or moved more than 15 MB/s on the device.
Check judge_neighbours(const rig::Foreign& foreign, const std::string& device);
/// `many` threads together over one thread: suspected below 0.9 for each (cores that are siblings,
/// a quota, a slower clock).
Check judge_cores(double one, double many, std::int32_t threads);

/// Over all that was measured: values above what physics allows, and contents or checksums that
/// were wrong (a kernel that the compiler removed, a block that was not the one asked for).
Check judge_ceilings(const Measurements& measurements);
Check judge_contents(const Measurements& measurements);

}  // namespace tidegate::calib
