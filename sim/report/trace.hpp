#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "models/demand.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

namespace tidegate {

/// Writes the timeline as a Chrome trace (JSON object format) for ui.perfetto.dev.
///
///   process per rank     a track per lane of the rank; a lane on which tasks overlap has as many
///                        tracks as tasks run at once
///   slice per task       name, phase, iteration, and the bytes it carries; none for skipped tasks
///   process "memory"     a counter per pool: bytes held; for GPUs another of what PyTorch's
///                        allocator reserves (allocation.hpp)
///   process "resources"  a counter per resource: sum of the fractions that its running tasks take
///                        when alone, at most 1. It says who wants the resource; what each gets
///                        while they share, and latencies, are not in it.
///
/// Times are microseconds with nanosecond digits; picoseconds are cut off, so slices of a track
/// that touch never overlap. Events are streamed: memory is tens of bytes per task.
void write_trace(std::ostream& out, const Plan& plan, const Timeline& timeline,
                 std::span<const Demand> demands, std::span<const Resource> resources,
                 const AllocatorOptions& allocator = {});

/// The same of several runs of one plan (predicted, measured), each with processes of its own,
/// whose names begin with that of the run.
struct TracedRun {
  std::string name;
  const Timeline* timeline;
};
void write_trace(std::ostream& out, const Plan& plan, std::span<const TracedRun> runs,
                 std::span<const Demand> demands, std::span<const Resource> resources,
                 const AllocatorOptions& allocator = {});

}  // namespace tidegate
