#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/demand.hpp"
#include "sim/plan/plan.hpp"
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
  };

  std::string scenario;
  std::string policy;
  std::string profile;
  std::string revision;
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;  ///< used by one token; less than all in mixtures of experts
  std::int64_t tokens_per_iteration = 0;
  std::int32_t gpus = 1;
  Flops model_flops;     ///< 6 · active_parameters · tokens + attention: no recomputation
  Flops hardware_flops;  ///< what the GPUs really compute, recomputation included
  std::vector<std::string>
      assumptions;  ///< "host.adam_rate = 3e9 (why)": a key of the profile first
  std::vector<std::string> notes;
  std::vector<std::string> next;  ///< commands worth trying now, printed at the end of the text
  std::vector<Storage> storage;   ///< by path, in the order of FileIo::path
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
  struct Pool {
    std::string name;
    Bytes peak, capacity;
    Bytes steady_peak;  ///< highest during the steady period
    Seconds peak_at;
    std::string peak_task;
    std::vector<Owner> owners;  ///< of the bytes at the peak, largest first
  };
  struct Resource {
    std::string name;
    double busy_fraction = 0;
    double work_fraction = 0;
    Seconds exposed;
    Seconds work;  ///< of one iteration
    Bytes bytes;   ///< payload of the copies, file accesses and collectives that use it
    /// Nothing else uses it, so that `bytes` is all its traffic: links, paths, not memories or
    /// cores.
    bool only_carries = false;
  };
  /// Bytes between one storage path and memory, of one node, and what writing does to the drive.
  struct Path {
    std::string name;
    Bytes read, written;
    Bytes written_per_day;             ///< training day and night
    std::optional<double> life_years;  ///< rated / (written per year · write amplification)
  };
  /// Copies between two memories of the node.
  struct Link {
    std::string name;  ///< "host -> gpu0"
    Bytes bytes;
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
  /// A change with which a run that does not fit would fit, found by simulating it.
  struct Fix {
    struct Pool {
      std::string name;
      Bytes peak;  ///< with the change: of a pool that still overflows, what it needs
      Bytes capacity;
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
  std::vector<Resource> resources;   ///< in the order given
  Seconds latency;                   ///< critical path: latencies and pure delays
  Seconds wait;                      ///< critical path: no task ran for it
  std::vector<Step> critical_tasks;  ///< largest first
  Bound bound;
  std::vector<Elasticity> elasticities;  ///< most exposed first; empty when nobody asked (sim/run)
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
