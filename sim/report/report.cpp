#include "sim/report/report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/report/allocation.hpp"
#include "sim/report/critical_path.hpp"
#include "sim/report/memory.hpp"
#include "sim/report/usage.hpp"

namespace tidegate {
namespace {

constexpr double seconds_per_day = 86400;
constexpr double days_per_year = 365.25;
constexpr double rated_days_per_year = 365;

Bytes bytes_of(std::int64_t count) { return Bytes(static_cast<double>(count)); }

bool is_gpu(const Pool& pool) { return pool.place.tier == Tier::gpu; }

// Of a folded run: what ranks that are not simulated hold in a pool that all share.
std::int64_t holders(const Report& report, const Pool& pool) {
  return is_gpu(pool) ? 1 : report.facts.fold;
}

std::vector<Report::Owner> owners_of(const Plan& plan, const Holding& holding,
                                     std::int64_t holders) {
  std::vector<Report::Owner> owners;
  for (std::size_t o = 0; o < holding.owner_bytes.size(); ++o) {
    const std::int64_t bytes = holding.owner_bytes[o] * holders;
    if (bytes > 0) owners.push_back({plan.owners[o], bytes});
  }
  std::ranges::stable_sort(owners, std::greater{}, &Report::Owner::bytes);
  return owners;
}

void report_times(Report& report, const Timeline& timeline, const Steady& steady) {
  const auto& iterations = report.iterations;
  report.iteration_time = steady.time() / steady.iterations();
  report.first_iteration_time = iterations.front().time();
  report.steady_iterations = static_cast<std::int32_t>(steady.count);
  for (std::size_t i = steady.first; i < iterations.size(); ++i) {
    for (std::size_t p = 0; p < phase_count; ++p) {
      report.phases[p] += iterations[i].phases[p] / steady.iterations();
    }
  }
  const Instant last = timeline.end.empty() ? 0 : std::ranges::max(timeline.end);
  report.drain = to_seconds(std::max<Instant>(0, last - iterations.back().to));
}

void report_rates(Report& report) {
  if (report.iteration_time <= Seconds(0)) return;
  const RunFacts& facts = report.facts;
  const double gpus = std::max(1, facts.gpus);
  report.tokens_per_second =
      static_cast<double>(facts.tokens_per_iteration) / report.iteration_time.value();
  report.model_rate_per_gpu = facts.model_flops / report.iteration_time / gpus;
  report.hardware_rate_per_gpu = facts.hardware_flops / report.iteration_time / gpus;
}

Report::Allocator allocator_of(const Plan& plan, const AllocatorHistory& history) {
  Report::Allocator allocator{.allocated_peak = bytes_of(history.run.allocated),
                              .reserved_peak = bytes_of(history.run.reserved),
                              .first_allocated_peak = bytes_of(history.first.allocated),
                              .first_reserved_peak = bytes_of(history.first.reserved),
                              .steady_allocated_peak = bytes_of(history.steady.allocated),
                              .steady_reserved_peak = bytes_of(history.steady.reserved),
                              .fragmentation = bytes_of(history.unused_at_peak),
                              .grows = history.grows,
                              .device_allocations = history.device_allocations,
                              .retries = history.retries,
                              .out_of_memory = {}};
  if (const auto& failure = history.out_of_memory) {
    allocator.out_of_memory = Report::OutOfMemory{.task = plan.label(failure->task),
                                                  .at = to_seconds(failure->at),
                                                  .asked = bytes_of(failure->asked),
                                                  .allocated = bytes_of(failure->allocated),
                                                  .reserved = bytes_of(failure->reserved),
                                                  .is_fragmentation = failure->is_fragmentation,
                                                  .fits_expandable = failure->fits_expandable};
  }
  return allocator;
}

void report_allocators(Report& report, const Plan& plan, const Timeline& timeline,
                       const Steady& steady) {
  const auto histories =
      allocator_histories(plan, timeline, report.iterations, report.facts.allocator);
  for (std::size_t p = 0; p < histories.size(); ++p) {
    if (!histories[p]) continue;
    report.pools[p].allocator = allocator_of(plan, *histories[p]);
    report.fits &= !histories[p]->out_of_memory;
  }
  report.memory_timeline = memory_series(plan, timeline, steady, histories);
  for (MemorySeries& series : report.memory_timeline) {
    const auto pool = std::ranges::find(plan.pools, series.pool, &Pool::name);
    const std::int64_t times = holders(report, *pool);
    for (std::int64_t& bytes : series.held) bytes *= times;
    for (auto& [name, list] : series.owners)
      for (std::int64_t& bytes : list) bytes *= times;
  }
}

void report_memory(Report& report, const Plan& plan, const Timeline& timeline,
                   const Steady& steady) {
  const std::vector<PoolHistory> histories = memory_of(plan, timeline, steady);
  for (std::size_t p = 0; p < histories.size(); ++p) {
    const PoolHistory& history = histories[p];
    const Holding& peak = history.peak();
    const std::optional<Holding>& over = history.first_over;
    const Pool& pool = plan.pools[p];
    const std::int64_t times = holders(report, pool);
    const auto all = [&](std::int64_t bytes) { return bytes_of(bytes * times); };
    const Bytes capacity = pool.capacity * static_cast<double>(times);
    report.pools.push_back({.name = pool.name,
                            .count = is_gpu(pool) ? report.facts.fold : 1,
                            .peak = all(peak.bytes),
                            .capacity = capacity,
                            .steady_peak = all(history.steady_peak),
                            .startup_peak = all(history.startup.bytes),
                            .training_peak = all(history.training.bytes),
                            .peak_at = to_seconds(peak.at),
                            .peak_task = peak.task ? plan.label(*peak.task) : "",
                            .owners = owners_of(plan, peak, times),
                            .training_owners = owners_of(plan, history.training, times),
                            .allocator = {}});
    if (!over) continue;
    report.overflows.push_back({.pool = pool.name,
                                .task = plan.label(*over->task),
                                .at = to_seconds(over->at),
                                .capacity = capacity,
                                .held = all(over->bytes),
                                .needed = all(peak.bytes),
                                .owners = owners_of(plan, *over, times)});
  }
  report.fits = report.overflows.empty();
}

void report_resources(Report& report, std::span<const Resource> resources,
                      const std::vector<ResourceUse>& use, const Steady& steady) {
  const double period = std::max(steady.time().value(), 1 / ticks_per_second);
  const RunFacts& facts = report.facts;
  for (std::size_t r = 0; r < resources.size(); ++r) {
    const double part = facts.parts.empty() ? 1 : facts.parts[r];
    const auto count = static_cast<std::int32_t>(std::lround(part * facts.fold));
    report.resources.push_back({.name = resources[r].name,
                                .count = std::max(1, count),
                                .busy_fraction = to_seconds(use[r].busy).value() / period,
                                .work_fraction = use[r].work_within.value() / period,
                                .work = use[r].work / steady.iterations(),
                                .bytes = use[r].bytes / (part * steady.iterations()),
                                .only_carries = use[r].only_carries});
  }
}

void report_critical_path(Report& report, const Plan& plan, const std::vector<PathSegment>& path,
                          const Steady& steady) {
  std::vector<Report::Step> steps(plan.names.size());
  std::optional<TaskId> previous;
  for (const PathSegment& segment : path) {
    const Seconds time = segment.time() / steady.iterations();
    switch (segment.blame) {
      case Blame::resource:
        report.resources[index(segment.resource)].exposed += time;
        break;
      case Blame::latency:
        report.latency += time;
        break;
      case Blame::wait:
        report.wait += time;
        break;
    }
    if (!segment.task) continue;
    Report::Step& step = steps[index(plan.task(*segment.task).name)];
    step.time += time;
    // A task with latency has two segments, one after the other.
    if (segment.task != previous) step.count += 1 / steady.iterations();
    previous = segment.task;
  }
  for (std::size_t n = 0; n < steps.size(); ++n) {
    steps[n].name = plan.names[n];
    if (steps[n].time > Seconds(0)) report.critical_tasks.push_back(steps[n]);
  }
  std::ranges::stable_sort(report.critical_tasks, std::greater{}, &Report::Step::time);
}

void report_bound(Report& report, Seconds chain) {
  // A run of a few iterations can be shorter than its chain's growth: it was late before.
  report.bound.chain = std::min(chain, report.iteration_time);
  report.bound.time = report.bound.chain;
  report.bound.limited_by = "dependences";
  for (const Report::Resource& resource : report.resources) {
    if (resource.work <= report.bound.time) continue;
    report.bound.time = resource.work;
    report.bound.limited_by = resource.name;
  }
}

void add_wear(Report::Path& path, const RunFacts::Storage& drive) {
  path.write_amplification = drive.write_amplification;
  path.rated_write_amplification = drive.rated_write_amplification;
  const bool is_rated = drive.rated > Bytes(0), is_sized = drive.capacity > Bytes(0);
  if (is_rated && is_sized) {
    path.rated_drive_writes_per_day =
        drive.rated / drive.capacity / (rated_days_per_year * drive.warranty_years);
  }
  if (path.written_per_day <= Bytes(0)) return;
  if (is_sized) path.drive_writes_per_day = path.written_per_day / drive.capacity;
  if (!is_rated) return;
  const double amplification = drive.write_amplification / drive.rated_write_amplification;
  path.life_years = drive.rated / (path.written_per_day * (days_per_year * amplification));
}

Report::Path path_report(const RunFacts& facts, std::size_t p, const Traffic::File& file,
                         const Steady& steady, Seconds iteration_time) {
  const bool is_known = p < facts.storage.size();
  const double times = facts.fold / steady.iterations();
  Report::Path path{.name = is_known ? facts.storage[p].name : fmt::format("path{}", p),
                    .read = file.read * times,
                    .written = file.written * times};
  if (iteration_time > Seconds(0)) {
    path.written_per_day = path.written * (seconds_per_day / iteration_time.value());
  }
  if (is_known) add_wear(path, facts.storage[p]);
  return path;
}

void report_traffic(Report& report, Traffic traffic, const Steady& steady) {
  traffic.paths.resize(std::max(traffic.paths.size(), report.facts.storage.size()));
  for (std::size_t p = 0; p < traffic.paths.size(); ++p) {
    report.paths.push_back(
        path_report(report.facts, p, traffic.paths[p], steady, report.iteration_time));
  }
  for (const auto& [name, bytes] : traffic.links) {
    const bool is_of_gpu = name.find("gpu") != std::string::npos;
    const std::int32_t fold = report.facts.fold;
    report.links.push_back({.name = name,
                            .bytes = bytes * ((is_of_gpu ? 1 : fold) / steady.iterations()),
                            .count = is_of_gpu ? fold : 1});
  }
}

}  // namespace

Report summarize(const Plan& plan, const Timeline& timeline, std::span<const Demand> demands,
                 std::span<const Resource> resources, const RunFacts& facts) {
  ensure(timeline.start.size() == plan.size() && timeline.end.size() == plan.size(),
         "a timeline has a start and an end for every task of its plan");
  ensure(timeline.choices.size() == plan.choices.size(),
         "a timeline has an outcome for every choice of its plan");
  ensure(demands.size() == plan.works.size(), "every work of a plan has a demand");
  ensure(facts.parts.empty() || facts.parts.size() == resources.size(),
         "every resource is a part of a device");
  Report report{.facts = facts, .iterations = iterations_of(plan, timeline)};
  const Steady steady = steady_period(report.iterations);
  report_times(report, timeline, steady);
  report_rates(report);
  report_memory(report, plan, timeline, steady);
  report_allocators(report, plan, timeline, steady);
  report_resources(report, resources, use_of(plan, timeline, demands, resources.size(), steady),
                   steady);
  report_critical_path(report, plan, critical_path(plan, timeline, demands, steady), steady);
  report_bound(report, chain_growth(plan, timeline, demands, steady));
  report_traffic(report, traffic_of(plan, timeline, steady), steady);
  return report;
}

}  // namespace tidegate
