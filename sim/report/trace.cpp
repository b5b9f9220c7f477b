#include "sim/report/trace.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.hpp"
#include "sim/report/allocation.hpp"
#include "sim/report/memory.hpp"
#include "sim/report/moments.hpp"
#include "sim/report/usage.hpp"

namespace tidegate {
namespace {

constexpr Instant ticks_per_ns = 1000;

// Text as a JSON string, quotes included.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Whole nanoseconds as microseconds.
std::string microseconds(Instant ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

class Events {
 public:
  explicit Events(std::ostream& out) : out_(out) {
    out_ << R"({"displayTimeUnit":"ns","traceEvents":[)";
  }
  void write(std::string_view event) {
    out_ << (is_first_ ? "\n" : ",\n") << event;
    is_first_ = false;
  }
  void name(const char* what, std::size_t process, std::size_t track, const std::string& name) {
    write(fmt::format(R"({{"ph":"M","name":"{}_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                      what, process, track, quoted(name)));
  }
  void sort(const char* what, std::size_t process, std::size_t track, std::size_t place) {
    write(fmt::format(
        R"({{"ph":"M","name":"{}_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", what,
        process, track, place));
  }
  void count(std::size_t process, const std::string& quoted_name, Instant at, std::string_view unit,
             const std::string& value) {
    write(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"{}":{}}}}})", quoted_name,
                      process, microseconds(at / ticks_per_ns), unit, value));
  }
  void finish() { out_ << "\n]}\n"; }

 private:
  std::ostream& out_;
  bool is_first_ = true;
};

// Tracks of a lane: as many as its tasks overlap.
struct Tracks {
  std::vector<std::size_t> first;      // by lane: number of its first track
  std::vector<std::size_t> count;      // by lane
  std::vector<std::uint32_t> of_task;  // by task, within its lane
};

Tracks tracks_of(const Plan& plan, const Timeline& timeline) {
  Tracks tracks{.of_task = std::vector<std::uint32_t>(plan.size())};
  std::vector<std::uint32_t> order(plan.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t t) { return timeline.start[t]; });
  std::vector<std::vector<Instant>> free_at(plan.lanes.size());
  for (const std::uint32_t t : order) {
    if (is_skipped(plan, TaskId{t}, timeline)) continue;
    auto& lane = free_at[index(plan.tasks[t].lane)];
    auto track = std::ranges::find_if(lane, [&](Instant at) { return at <= timeline.start[t]; });
    if (track == lane.end()) track = lane.insert(lane.end(), 0);
    *track = timeline.end[t];
    tracks.of_task[t] = static_cast<std::uint32_t>(track - lane.begin());
  }
  std::size_t next = 1;
  for (const auto& lane : free_at) {
    tracks.first.push_back(next);
    tracks.count.push_back(std::max<std::size_t>(1, lane.size()));
    next += tracks.count.back();
  }
  return tracks;
}

// Processes of one run: its ranks, then memory and resources.
struct Processes {
  std::size_t first = 1;
  std::string run;  // its name, where there are several

  std::size_t of_rank(std::size_t rank) const { return first + rank; }
  std::string name(const std::string& what) const { return run.empty() ? what : run + ": " + what; }
};

std::size_t ranks_of(const Plan& plan) {
  std::size_t ranks = static_cast<std::size_t>(std::max(1, plan.ranks));
  for (const Lane& lane : plan.lanes) ranks = std::max<std::size_t>(ranks, lane.rank + 1u);
  return ranks;
}

void write_names(Events& events, const Plan& plan, const Tracks& tracks,
                 const Processes& processes) {
  const std::size_t ranks = ranks_of(plan);
  for (std::size_t rank = 0; rank < ranks + 2; ++rank) {
    const std::size_t process = processes.of_rank(rank);
    const std::string name = rank < ranks    ? fmt::format("rank {}", rank)
                             : rank == ranks ? "memory"
                                             : "resources";
    events.name("process", process, 0, processes.name(name));
    events.sort("process", process, 0, process);
  }
  for (std::size_t l = 0; l < plan.lanes.size(); ++l) {
    const Lane& lane = plan.lanes[l];
    for (std::size_t k = 0; k < tracks.count[l]; ++k) {
      const std::size_t track = tracks.first[l] + k;
      const bool is_one = tracks.count[l] == 1;
      events.name("thread", processes.of_rank(lane.rank), track,
                  is_one ? lane.name : fmt::format("{} [{}]", lane.name, k));
      events.sort("thread", processes.of_rank(lane.rank), track, track);
    }
  }
}

void write_slices(Events& events, const Plan& plan, const Timeline& timeline, const Tracks& tracks,
                  const Processes& processes) {
  std::vector<std::string> names;
  for (const std::string& name : plan.names) names.push_back(quoted(name));
  std::vector<std::int64_t> bytes;
  for (const Work& work : plan.works) bytes.push_back(std::llround(payload(work).value()));
  for (std::size_t t = 0; t < plan.size(); ++t) {
    if (is_skipped(plan, static_cast<TaskId>(t), timeline)) continue;
    const Task& task = plan.tasks[t];
    std::string name = names[index(task.name)];
    if (task.item >= 0) name.insert(name.size() - 1, fmt::format(" {}", task.item));
    const Instant from = timeline.start[t] / ticks_per_ns;
    const Instant to = timeline.end[t] / ticks_per_ns;
    events.write(
        fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{},)"
                    R"("args":{{"task":{},"rank":{},"phase":"{}","iteration":{},"bytes":{}}}}})",
                    name, name_of(task.phase), processes.of_rank(plan.lanes[index(task.lane)].rank),
                    tracks.first[index(task.lane)] + tracks.of_task[t], microseconds(from),
                    microseconds(to - from), t, task.rank, name_of(task.phase), task.iteration,
                    bytes[index(task.work)]));
  }
}

// A counter that is written once per instant, when the instant is over and the value has changed.
class Counters {
 public:
  using Print = std::string (*)(std::int64_t value);
  Counters(Events& events, std::size_t process, std::string_view unit, Print print,
           std::vector<std::string> names)
      : events_(events), process_(process), unit_(unit), print_(print), values_(names.size()) {
    for (const std::string& name : names) names_.push_back(quoted(name));
  }
  void add(std::size_t counter, Instant at, std::int64_t delta) {
    Value& v = values_[counter];
    if (at != v.at) flush(counter);
    v.at = at;
    v.now += delta;
  }
  void finish(std::size_t counter) { flush(counter); }
  void finish() {
    for (std::size_t c = 0; c < values_.size(); ++c) flush(c);
  }

 private:
  struct Value {
    Instant at = 0;
    std::int64_t now = 0;
    std::string written;
  };
  void flush(std::size_t counter) {
    Value& v = values_[counter];
    std::string text = print_(v.now);
    if (text == v.written) return;
    events_.count(process_, names_[counter], v.at, unit_, text);
    v.written = std::move(text);
  }

  Events& events_;
  std::size_t process_;
  std::string_view unit_;
  Print print_;
  std::vector<std::string> names_;
  std::vector<Value> values_;
};

template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(item.name);
  return names;
}

void write_memory(Events& events, const Plan& plan, const Timeline& timeline, std::size_t process) {
  const auto print = [](std::int64_t bytes) { return fmt::format("{}", bytes); };
  Counters counters(events, process, "bytes", print, names_of(plan.pools));
  play_memory(plan, timeline, [&](Instant at, TaskId, const Buffer& buffer, std::int64_t delta) {
    counters.add(index(buffer.pool), at, delta);
  });
  counters.finish();
}

void write_reserved(Events& events, const Plan& plan, const Timeline& timeline,
                    const AllocatorOptions& options, std::size_t process) {
  const auto histories =
      allocator_histories(plan, timeline, iterations_of(plan, timeline), options);
  const auto print = [](std::int64_t bytes) { return fmt::format("{}", bytes); };
  std::vector<std::string> names;
  for (const Pool& pool : plan.pools) names.push_back(pool.name + " reserved");
  Counters counters(events, process, "bytes", print, names);
  for (std::size_t p = 0; p < histories.size(); ++p) {
    if (!histories[p]) continue;
    std::int64_t before = 0;
    for (const AllocatorHistory::Step& step : histories[p]->steps) {
      counters.add(p, step.at, step.reserved - before);
      before = step.reserved;
    }
    counters.finish(p);
  }
}

// Fractions are summed as whole billionths, so that a resource that nobody uses is exactly at zero.
void write_utilisation(Events& events, const Plan& plan, const Timeline& timeline,
                       std::span<const Demand> demands, std::span<const Resource> resources,
                       std::size_t process) {
  constexpr double billion = 1e9;
  const auto print = [](std::int64_t v) {
    return fmt::format("{:.4g}", std::min(1.0, static_cast<double>(v) / billion));
  };
  Counters counters(events, process, "fraction", print, names_of(resources));
  const auto list = moments(timeline, plan.size(), [&](TaskId t) {
    return !is_skipped(plan, t, timeline) && demands[index(plan.task(t).work)].share_count > 0;
  });
  for (const Moment& m : list) {
    for (const Share& share : demands[index(plan.task(m.task()).work)].used()) {
      const std::int64_t fraction = std::llround(share.fraction * billion);
      counters.add(index(share.resource), m.at(), m.is_end() ? -fraction : fraction);
    }
  }
  counters.finish();
}

}  // namespace

void write_trace(std::ostream& out, const Plan& plan, std::span<const TracedRun> runs,
                 std::span<const Demand> demands, std::span<const Resource> resources,
                 const AllocatorOptions& allocator) {
  ensure(demands.size() == plan.works.size(), "every work of a plan has a demand");
  Events events(out);
  Processes processes;
  for (const auto& [name, timeline] : runs) {
    ensure(timeline->start.size() == plan.size() && timeline->end.size() == plan.size(),
           "a timeline has a start and an end for every task of its plan");
    ensure(timeline->choices.size() == plan.choices.size(),
           "a timeline has an outcome for every choice of its plan");
    processes.run = name;
    const Tracks tracks = tracks_of(plan, *timeline);
    write_names(events, plan, tracks, processes);
    write_slices(events, plan, *timeline, tracks, processes);
    const std::size_t memory = processes.of_rank(ranks_of(plan));
    write_memory(events, plan, *timeline, memory);
    write_reserved(events, plan, *timeline, allocator, memory);
    write_utilisation(events, plan, *timeline, demands, resources, memory + 1);
    processes.first = memory + 2;
  }
  events.finish();
}

void write_trace(std::ostream& out, const Plan& plan, const Timeline& timeline,
                 std::span<const Demand> demands, std::span<const Resource> resources,
                 const AllocatorOptions& allocator) {
  const TracedRun run{"", &timeline};
  write_trace(out, plan, {&run, 1}, demands, resources, allocator);
}

}  // namespace tidegate
