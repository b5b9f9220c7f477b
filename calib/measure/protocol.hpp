#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "calib/measure/bench.hpp"

/// How samples are taken: warm-up, then blocks of samples, spread over time in random order, each
/// sample gated on the CPU time and traffic of others, with canaries before and after.
///
///   pass 1 … P:  for all rows in random order:  warm-up, one block
///   block        samples until the stopping rule is content, the budget of the row is spent, or
///                too many were rejected
///
/// Short samples of storage are judged together, five of them or 0.3 s: the system counts the
/// cores' time in ticks of 10 ms, and of a sample of that length a single tick is a core.
///
/// The value of a block is the median of its samples; the interval of a row comes from its blocks,
/// which are separated in time, never from adjacent samples (lag-1 autocorrelation of adjacent
/// windows is 0.3 to 0.8 on shared machines).
namespace tidegate::calib {

/// Says when a block has enough samples. Fed with numbers, so it is tested with numbers.
///
/// Content when at least `least` samples were added and the half-width of the 95 % order-statistic
/// interval of the median is at most `precision` of the median.
class StoppingRule {
 public:
  explicit StoppingRule(double precision = 0.02, std::size_t least = 5, std::size_t most = 200);
  void add(double value);
  bool is_content() const;
  bool is_exhausted() const { return values_.size() >= most_; }
  std::size_t count() const { return values_.size(); }
  /// Relative half-width; infinity while it cannot be told.
  double half_width() const;

 private:
  double precision_;
  std::size_t least_, most_;
  std::vector<double> values_;
};

/// All assumed.
struct GateLimits {
  double cpu_cores = 0.05;  ///< foreign cores beside a CPU row
  double io_cores = 0.25;   ///< beside a storage row (kernel workers count as foreign), and what
                            ///< counting in ticks may be wrong by
  double io_bytes = 15e6;   ///< foreign bytes per second of the device beside a storage row
  double steal = 0.15;
};
/// Empty when the sample counts, else the reason: "0.83 cores busy with other work".
std::string spoiled_by(const Row& row, const rig::Foreign& foreign, const GateLimits& limits);

struct TakenSample {
  double value = 0;
  double at = 0;  ///< seconds since the run began
  double elapsed = 0;
  std::string spoiled;  ///< empty: it counts
  std::vector<double> series;
};
struct Block {
  std::int32_t pass = 0;
  bool is_converged = false;
  std::vector<TakenSample> samples;
  /// Median of the samples that count; NaN when none does.
  double value() const;
};
struct RowResult {
  Row row;
  std::vector<Block> blocks;
  std::vector<std::string> faults;  ///< "contents differ", "above the ceiling of 25.6 GB/s (…)"
};

/// A fixed probe of a second or less, taken between groups of rows: what it shows is the machine's
/// drift, not a quantity.
struct Canary {
  std::string name;
  std::vector<double> at, value;
};

struct Measurements {
  std::vector<RowResult> rows;
  std::vector<Canary> canaries;
  std::int32_t passes = 0;
  std::int64_t accepted = 0, rejected = 0;
  double seconds = 0;
  bool is_complete = false;
  std::string host;  ///< rig::HostFacts::id of where they were taken; empty where nobody said
};

struct Protocol {
  bool is_gated = true;  ///< false: samples beside other work count too
  std::int32_t passes = 3;
  Seconds block{1.0};  ///< most time of a block
  std::uint64_t seed = 7;
  GateLimits gate;
  std::int32_t retries = 10;  ///< rejections per block before it is given up
  /// Asked once, when a bench is prepared: experiments on what it made.
  std::function<void(Bench&)> when_prepared;
  double write_budget = 0;  ///< bytes that all rows may write; rows that would pass it are skipped
};

struct ProgressNow {
  std::string doing;
  std::int32_t pass = 0, passes = 0;  ///< pass 0: before the first, or after the last
  std::size_t done = 0, all = 0;      ///< blocks
  double seconds = 0, left = 0;       ///< left 0: not known yet
  std::int64_t rejected = 0;
};

/// Runs benches under the protocol. Blocks that `known` holds are not measured again (--resume),
/// but for those of rows with faults. On Interrupted, returns what there is with is_complete =
/// false. A row whose sample throws MachineError gets that as a fault and is not sampled again in
/// that pass.
Measurements measure(std::span<const std::unique_ptr<Bench>> benches,
                     std::span<const std::unique_ptr<Bench>> canaries, const Protocol& protocol,
                     const Measurements& known,
                     const std::function<void(const ProgressNow&)>& progress);

/// A line of JSON per block, and its inverse: raw samples beside the profile. read throws
/// InputError with the line of what is wrong.
std::string to_lines(const Measurements& measurements);
Measurements read_lines(const std::string& text, const std::string& name);
/// FNV-1a of 64 bits (Fowler, Noll, Vo) of such lines: whether they are those of a profile.
std::string fingerprint(const std::string& lines);

}  // namespace tidegate::calib
