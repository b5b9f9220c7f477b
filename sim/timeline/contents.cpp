#include "sim/timeline/contents.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

using How = Access::How;
using Kind = Content::Kind;
using Verb = Deed::Verb;

// SplitMix64's output function (Steele, Lea and Flood 2014) over what came before and `value`.
std::uint64_t joined(std::uint64_t hash, std::uint64_t value) {
  std::uint64_t z = (hash ^ value) + 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

class Trace {
 public:
  Trace(const Plan& plan, const Timeline& timeline)
      : plan_(plan),
        meaning_(plan.meaning),
        timeline_(timeline),
        is_allocated_(plan.buffers.size(), 0),
        in_buffer_(plan.buffers.size()) {
    result_.values.assign(meaning_.contents.size(), 0);
  }

  ContentTrace run() {
    for (const TaskMoment& m : moments(plan_, timeline_)) m.is_end ? end(m.task) : start(m.task);
    return std::move(result_);
  }

 private:
  using Cell = std::pair<ContentId, std::uint64_t>;  // a content at a place
  const Plan& plan_;
  const Meaning& meaning_;
  const Timeline& timeline_;
  std::map<Cell, std::uint64_t> cells_;
  std::vector<std::uint8_t> is_allocated_;
  std::vector<std::vector<Cell>> in_buffer_;
  std::map<std::pair<TaskId, Cell>, std::uint64_t> reading_;  // by tasks that run
  ContentTrace result_;

  bool happens(When when) const { return holds(when, timeline_); }
  static Cell cell(const Access& a) {
    const std::uint64_t place =
        a.buffer == Access::standing ? index(a.pool) << 32U : ~0ULL << 48U | index(a.buffer);
    return {a.content, place};
  }
  void fault(TaskId task, const Access& a, const char* what) {
    result_.faults.push_back(
        fmt::format("task {} '{}' of iteration {} {}: {}, in {}", index(task), plan_.label(task),
                    plan_.task(task).iteration, what, to_text(meaning_.content(a.content)),
                    a.buffer == Access::standing ? plan_.pools[index(a.pool)].name
                                                 : fmt::format("buffer {}", index(a.buffer))));
  }

  void start(TaskId task) {
    for (const Effect& e : plan_.effects(task)) {
      if (e.kind == Effect::Kind::allocate && happens(e.when)) is_allocated_[e.target] = 1;
    }
    std::vector<Cell> written;
    for (const Deed& deed : meaning_.of(task)) {
      for (const Access& a : meaning_.of(deed)) {
        if (!happens(a.when)) continue;
        if (a.how == How::write) written.push_back(cell(a));
        const bool is_own = std::ranges::find(written, cell(a)) != written.end();
        if (a.how != How::read || is_own) continue;
        const auto found = cells_.find(cell(a));
        if (found != cells_.end()) reading_[{task, cell(a)}] = found->second;
        check_read(task, a, found == cells_.end() ? 0 : found->second);
      }
    }
  }

  void check_read(TaskId task, const Access& a, std::uint64_t value) {
    if (value == 0) {
      fault(task, a, "reads what is not there");
    } else if (value != result_.values[index(a.content)]) {
      fault(task, a, "reads an outdated copy");
    }
  }

  void end(TaskId task) {
    for (const Deed& deed : meaning_.of(task)) perform(task, deed);
    for (const Effect& e : plan_.effects(task)) {
      if (e.kind != Effect::Kind::free || !happens(e.when)) continue;
      is_allocated_[e.target] = 0;
      for (const Cell& c : in_buffer_[e.target]) cells_.erase(c);
      in_buffer_[e.target].clear();
    }
  }

  void perform(TaskId task, const Deed& deed) {
    std::uint64_t inputs = 0, last = 0;
    for (const Access& a : meaning_.of(deed)) {
      if (a.how != How::read || !happens(a.when)) continue;
      const auto found = cells_.find(cell(a));
      last = found == cells_.end() ? 0 : found->second;
      const auto before = reading_.find({task, cell(a)});
      if (before != reading_.end()) {
        if (before->second != last) fault(task, a, "sees change what it reads");
        reading_.erase(before);
      }
      inputs = joined(inputs, last);
    }
    std::uint64_t master = 0;
    for (const Access& a : meaning_.of(deed)) {
      if (!happens(a.when)) continue;
      if (a.how != How::write) continue;
      const Content& content = meaning_.content(a.content);
      const std::uint64_t value = made(task, deed, content, inputs, last, master);
      if (content.kind == Kind::master) master = value;
      write(task, a, value);
    }
    for (const Access& a : meaning_.of(deed)) {
      if (a.how == How::forget && happens(a.when)) cells_.erase(cell(a));
    }
  }

  void write(TaskId task, const Access& a, std::uint64_t value) {
    if (a.buffer != Access::standing) {
      if (is_allocated_[index(a.buffer)] == 0) fault(task, a, "writes into a buffer that is gone");
      in_buffer_[index(a.buffer)].push_back(cell(a));
    }
    cells_[cell(a)] = value;
    result_.values[index(a.content)] = value;
  }

  // The number of what a deed writes. `last` is the last value read, `master` the master that the
  // same deed has written.
  std::uint64_t made(TaskId task, const Deed& deed, const Content& content, std::uint64_t inputs,
                     std::uint64_t last, std::uint64_t master) const {
    const auto kind = static_cast<std::uint64_t>(content.kind);
    const bool is_16_bit = content.kind == Kind::shard || content.kind == Kind::parameter;
    switch (deed.verb) {
      case Verb::move:
        return last;
      case Verb::cast:
        return joined(last, 1);
      case Verb::adam:
      case Verb::sgd:
        return is_16_bit && master != 0 ? joined(master, 1) : joined(joined(inputs, kind), 2);
      case Verb::initialise:
        return joined(joined(kind, number(content.tensor)), 3);
      case Verb::forward:
      case Verb::backward:
      case Verb::keep:
        return computed(task, deed, content, inputs);
      case Verb::gather:
      case Verb::add:
        return joined(inputs, 4);
      case Verb::reduce:
        return joined(joined(inputs, number(content.first)), 5);
    }
    return 0;
  }

  std::uint64_t computed(TaskId task, const Deed& deed, const Content& content,
                         std::uint64_t inputs) const {
    // A layer's input is kept as it comes.
    if (content.kind == Kind::saved && content.tensor == 0) return first_read(deed);
    const auto kind = static_cast<std::uint64_t>(content.kind);
    std::uint64_t value = joined(inputs, static_cast<std::uint64_t>(deed.verb));
    for (const std::int32_t n : {deed.layer, deed.op, deed.micro_batch})
      value = joined(value, number(n));
    value = joined(value, plan_.task(task).iteration);
    value = joined(joined(value, content.rank), kind);
    return content.kind == Kind::flow ? value : joined(value, number(content.tensor));
  }

  std::uint64_t first_read(const Deed& deed) const {
    const auto found = cells_.find(cell(meaning_.of(deed).front()));
    return found == cells_.end() ? 0 : found->second;
  }
  static std::uint64_t number(std::int64_t n) { return static_cast<std::uint64_t>(n); }
};

}  // namespace

std::vector<TaskMoment> moments(const Plan& plan, const Timeline& timeline) {
  struct Keyed {
    Instant at;
    bool is_later;  // within the instant
    TaskMoment moment;
  };
  std::vector<Keyed> all;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (is_skipped(plan, TaskId{t}, timeline)) continue;
    const Instant start = timeline.start[t], end = timeline.end[t];
    all.push_back({start, true, {TaskId{t}, false}});
    all.push_back({end, start == end, {TaskId{t}, true}});
  }
  std::ranges::sort(all, {}, [](const Keyed& k) {
    return std::tuple(k.at, k.is_later, index(k.moment.task), k.moment.is_end);
  });
  std::vector<TaskMoment> list;
  for (const Keyed& k : all) list.push_back(k.moment);
  return list;
}

ContentTrace trace_contents(const Plan& plan, const Timeline& timeline) {
  ensure(plan.meaning.is_carried(), "the plan carries its meaning");
  return Trace(plan, timeline).run();
}

}  // namespace tidegate
