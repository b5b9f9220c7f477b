#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/demand.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/memory_series.hpp"
#include "sim/report/period.hpp"
#include "sim/timeline/timeline.hpp"

/// What a run means: how fast, whether it fits, what holds it back.
///
/// summarize() is a pure function of a plan and a timeline, whoever made the timeline; to_text() is
/// for people, to_json() for programs (docs/report_json.md), trace.hpp for Perfetto.
///
/// Words used here:
///   steady period   the last two iterations when there are three or more (a policy may alternate
///                   its order, with period two), else the last one. Every time and every number of
///                   bytes below is a mean per iteration of it, unless it says otherwise.
///   busy            at least one task uses the resource (its latency excluded).
///   work            time that the resource's tasks would need of it at full speed.
///   exposed         seconds of the critical path that the resource is blamed for
///                   (critical_path.hpp). Exposed times, latency and wait sum to iteration_time.
namespace tidegate {

/// What the plan does not know about the run it came from. Counts and FLOPs are of one iteration,
/// over all ranks of all nodes.
struct RunFacts {
  struct Storage {
    std::string name;
    Bytes rated;                     ///< bytes that may be written over its life; 0 when unknown
    double write_amplification = 1;  ///< bytes written to flash per byte written to the drive
    double rated_write_amplification = 1;  ///< of the workload that the rating is for
    Bytes capacity = {};                   ///< of a drive; 0 when unknown or a file system
    double warranty_years = 5;             ///< that `rated` counts on
  };

  /// What becomes of a setting of the engine's own file (sim/deepspeed/remark.hpp).
  struct Remark {
    std::string kind;  ///< "ignored"
    std::string key, at, text;
  };

  std::string scenario;
  std::string policy;
  std::string profile;
  std::string revision;
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;  ///< used by one token; less than all in mixtures of experts
  std::int64_t tokens_per_iteration = 0;
  std::int32_t gpus = 1;
  /// A simulated GPU stands for `fold` GPUs that do the same (Machine::part()): the report counts
  /// them all, and what they share as a whole. `parts` as Machine::parts(), or nothing.
  std::int32_t fold = 1;
  std::vector<double> parts;
  Flops model_flops;     ///< 6 · active_parameters · tokens + attention: no recomputation
  Flops hardware_flops;  ///< what the GPUs really compute, recomputation included
  std::vector<std::string>
      assumptions;  ///< "host.adam_rate = 3e9 (why)": a key of the profile first
  std::vector<std::string> notes;
  std::vector<Remark> engine_remarks;  ///< empty when no such file was read
  std::vector<std::string> next;  ///< commands worth trying now, printed at the end of the text
  std::vector<Storage> storage;   ///< by path, in the order of FileIo::path
  AllocatorOptions allocator;     ///< of the GPUs' framework
};

struct Report {
  struct Owner {
    std::string name;
    std::int64_t bytes = 0;
    bool operator==(const Owner&) const = default;
  };
  /// A pool's allocations exceeded its capacity.
  struct Overflow {
    std::string pool;
    std::string task;  ///< label of the task whose allocation was the first too much
    Seconds at;
    Bytes capacity;
    Bytes held;                 ///< after that allocation
    Bytes needed;               ///< peak of the run: the capacity that this timeline asks for
    std::vector<Owner> owners;  ///< of the bytes held, largest first
  };
  /// The quantities of PyTorch's error message.
  struct OutOfMemory {
    std::string task;  ///< label of the task whose allocation failed
    Seconds at;
    Bytes asked, allocated, reserved;
    bool is_fragmentation = false;  ///< allocated and asked bytes together are within the capacity
    bool fits_expandable = false;   ///< the run fits with expandable segments
  };
  /// A GPU's pool as PyTorch's caching allocator holds it (allocation.hpp), until it ran out of
  /// memory, if it did.
  struct Allocator {
    Bytes allocated_peak, reserved_peak;
    Bytes first_allocated_peak, first_reserved_peak;    ///< of the first iteration
    Bytes steady_allocated_peak, steady_reserved_peak;  ///< of the steady period
    Bytes fragmentation;  ///< reserved less allocated when reserved was first highest
    bool grows = false;   ///< reserved rises in the steady period above all before
    std::int64_t device_allocations = 0;  ///< cudaMalloc calls, or mappings of pages
    std::int64_t retries = 0;             ///< cudaMalloc calls after a flush of the cache
    std::optional<OutOfMemory> out_of_memory;
  };
  struct Pool {
    std::string name;
    std::int32_t count = 1;  ///< GPUs that it stands for, each with as much
    Bytes peak, capacity;
    Bytes steady_peak;    ///< highest during the steady period
    Bytes startup_peak;   ///< highest before the first task of a phase
    Bytes training_peak;  ///< highest from then on; the larger of the two is `peak`
    Seconds peak_at;
    std::string peak_task;
    std::vector<Owner> owners;           ///< of the bytes at the peak, largest first
    std::vector<Owner> training_owners;  ///< of the bytes at the training peak, largest first
    std::optional<Allocator> allocator;  ///< GPUs only
    /// Loading or setting up needs more than training does.
    bool peaks_at_startup() const {
      return startup_peak > training_peak && training_peak.value() > 0;
    }
  };
  struct Resource {
    std::string name;
    std::int32_t count = 1;  ///< devices that it stands for, each with as much
    double busy_fraction = 0;
    double work_fraction = 0;
    Seconds exposed;
    Seconds work;  ///< of one iteration
    Bytes bytes;   ///< payload of the copies, file accesses and collectives that use it
    /// Nothing else uses it, so that `bytes` is all its traffic: links, paths, not memories or
    /// cores.
    bool only_carries = false;
  };
  /// Bytes between one storage path and memory, of one node, and what writing does to the drive:
  ///
  ///   life           = rated · rated write amplification / (written per year · write
  ///   amplification) drive writes   = written per day / capacity rated for      = rated /
  ///   (capacity · warranty in days)
  ///
  /// with years of 365.25 days in life, and of 365 in ratings, as makers count.
  struct Path {
    std::string name;
    Bytes read, written;
    Bytes written_per_day;  ///< training day and night
    std::optional<double> life_years;
    std::optional<double> drive_writes_per_day, rated_drive_writes_per_day;
    double write_amplification = 1, rated_write_amplification = 1;
  };
  /// Copies between two memories of the node.
  struct Link {
    std::string name;  ///< "host -> gpu0"
    Bytes bytes;
    std::int32_t count = 1;  ///< links that it stands for, each with as much
  };
  /// Tasks of one name on the critical path.
  struct Step {
    std::string name;
    Seconds time;
    double count = 0;
  };
  /// An iteration shortens by `value` percent when these resources become 1 % faster.
  struct Elasticity {
    std::string name;  ///< "nvme", "gpu*.h2d (4)"
    double value = 0;
  };
  /// What binds now made twice as fast, and what binds then (sim/run/elasticity.hpp).
  struct Doubled {
    std::string name;
    Seconds iteration_time;
    std::optional<Elasticity> next;  ///< nothing: no kind of resource is worth a faster one
  };
  /// Nine in ten iteration times lie within (sim/run/interval.hpp): what the profile's
  /// uncertainties do to them, and what the models miss whatever the profile. Deviations are of the
  /// logarithm of the time.
  struct Range {
    Seconds low, high;
    double profile_deviation = 0;  ///< over the draws
    double model_deviation = 0;
    std::int32_t draws = 0;
    std::uint64_t seed = 0;
    std::int32_t uncertain = 0,
                 silent = 0;  ///< values of the profile that state an uncertainty or none
  };
  /// A change with which a run that does not fit would fit, found by simulating it.
  struct Fix {
    struct Pool {
      std::string name;
      Bytes peak;  ///< with the change: of a pool that still overflows, what it needs
      Bytes capacity;
      std::int32_t count = 1;  ///< as Report::Pool
      bool operator==(const Pool&) const = default;
    };
    std::string what;               ///< "recompute every block in backward"
    std::vector<std::string> sets;  ///< "key=value", as --set takes them; nothing else changes
    Seconds iteration_time;
    double tokens_per_second = 0;
    double slow_down = 1;     ///< iteration time, divided by that of the run with enough memory
    std::vector<Pool> pools;  ///< those that overflow without the change, or with it
  };
  struct Fixes {
    std::int32_t tried = 0;      ///< changes simulated
    std::vector<Fix> found;      ///< fewest keys first, then fastest
    std::optional<Fix> nearest;  ///< when none fits: the one that lacks the smallest part of a pool
  };
  /// No order of the same tasks repeats faster:
  ///   time = max(chain, work of each resource)
  struct Bound {
    Seconds time;
    Seconds chain;           ///< growth of the longest chain of dependences, each task alone
    std::string limited_by;  ///< "dependences" or the resource's name
  };

  RunFacts facts;
  /// No pool overflows and no GPU's allocator runs out of memory.
  bool fits = true;
  std::vector<Overflow> overflows;

  Seconds iteration_time;
  Seconds first_iteration_time;
  std::vector<Iteration> iterations;
  std::int32_t steady_iterations = 1;
  PhaseTimes phases{};  ///< by Phase; they sum to iteration_time
  Seconds drain;        ///< from the end of the last iteration to the end of the last task

  double tokens_per_second = 0;
  FlopsPerSecond model_rate_per_gpu;
  FlopsPerSecond hardware_rate_per_gpu;

  std::vector<Pool> pools;
  std::vector<MemorySeries> memory_timeline;  ///< of GPUs and host, over the steady period
  std::vector<Resource> resources;            ///< in the order given
  Seconds latency;                            ///< critical path: latencies and pure delays
  Seconds wait;                               ///< critical path: no task ran for it
  std::vector<Step> critical_tasks;           ///< largest first
  Bound bound;
  std::vector<Elasticity> elasticities;  ///< most exposed first; empty when nobody asked (sim/run)
  std::optional<Doubled> doubled;        ///< nothing when nobody asked, or nothing binds
  std::optional<Range> range;            ///< nothing when nobody asked (sim/run)
  std::optional<Fixes> fixes;            ///< nothing when the run fits or nobody asked (sim/run)
  std::vector<Path> paths;
  std::vector<Link> links;
};

/// demands[i] belongs to plan.works[i]; shares index `resources`. Linear in the plan's size but for
/// sorting. Throws std::logic_error when the sizes do not match.
Report summarize(const Plan& plan, const Timeline& timeline, std::span<const Demand> demands,
                 std::span<const Resource> resources, const RunFacts& facts);

/// For people: verdict, phases, memory, resources, critical path, storage, assumptions. UTF-8
/// without colours, lines of at most `width` columns where words allow. Resources that differ in a
/// number are one line (kin.hpp); of the assumptions, those that matter most to this run are shown
/// (assumptions.hpp). JSON has all of both.
std::string to_text(const Report& report, std::size_t width = 80);

/// For programs: one JSON object, schema "tidegate.report/1", described in docs/report_json.md.
/// Numbers are finite; one that cannot be stated is null.
std::string to_json(const Report& report);

}  // namespace tidegate
