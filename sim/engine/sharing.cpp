#include "sim/engine/sharing.hpp"

#include <algorithm>

#include "models/base/error.hpp"
#include "sim/engine/heap.hpp"

namespace tidegate {
namespace {

// Loads are rounded to 1 / full_load each; this much over is the rounding of many that just fit.
constexpr double just_full = static_cast<double>(full_load) + 64;

}  // namespace

Sharing::Sharing(std::span<const Resource> resources, const FlowTable& table,
                 std::span<const std::uint32_t> most_flows, std::size_t most_running)
    : resources_(resources),
      shares_(table.shares),
      terms_(table.shares.size()),
      flows_(table.classes.size()) {
  std::size_t room = 0;
  for (const std::uint32_t most : most_flows) room += most;
  ensure(room < std::numeric_limits<std::uint32_t>::max(), "fewer than 2^32 flows run at a time");
  marks_.resize(room);
  for (std::size_t i = 0; i < terms_.size(); ++i) terms_[i].resource = shares_[i].use / 2;
  std::uint32_t marks = 0;
  for (std::size_t c = 0; c < flows_.size(); ++c) {
    const FlowClass& from = table.classes[c];
    Flow& to = flows_[c];
    to.pull = from.pull, to.marks = marks;
    to.first_share = from.first_share;
    to.share_count = static_cast<std::uint8_t>(from.share_count);
    marks += most_flows[c];
    highest_pull_ = std::max(highest_pull_, to.pull);
  }
  const std::size_t slots = std::min(flows_.size(), most_running);
  const std::size_t count = resources.size();
  words_ = (slots + 63) / 64;
  due_.resize(slots), class_at_.resize(slots), hits_.reserve(slots), free_slots_.reserve(slots);
  touched_.reserve(slots * 2), open_.resize(words_), users_.resize(count * words_);
  load_.resize(2 * count), flows_on_.resize(2 * count), cost_.assign(2 * count, 1);
  is_changed_.resize(count), is_contended_.resize(count), is_unlisted_.resize(count);
  pull_.resize(count), fill_.resize(count), every_slot_.assign(words_, ~std::uint64_t{0});
  changed_.reserve(count), listed_.resize(count + 1), contended_.reserve(count);
  for (std::uint32_t r = 0; r < count; ++r) {
    const double full = resources[r].burst.value() * ticks_per_second;
    if (full > 0) bursts_.push_back({r, full, full, resources[r].recovery, 0, 0, never});
  }
}

void Sharing::touch(Flow& flow, std::uint32_t flow_class) {
  if (flow.touched) return;
  flow.touched = true;
  touched_.push_back(flow_class);
}

void Sharing::join(std::uint32_t flow_class, std::uint32_t task, double alone, Instant now) {
  Flow& flow = flows_[flow_class];
  if (flow.count == 0) {
    flow.served = 0;
  } else {
    flow.served += flow.speed * static_cast<double>(now - flow.since);
  }
  flow.since = now;
  heap_push(&marks_[flow.marks], flow.count++, {flow.served + alone, task});
  flow.first_mark = marks_[flow.marks].at;
  touch(flow, flow_class);
}

void Sharing::take_ended(Instant now, std::vector<std::uint32_t>& ended) {
  for (const std::uint32_t slot : hits_) {
    if (due_[slot] != now) break;  // the hits share one instant; it may be later than `now`
    Flow& flow = flows_[class_at_[slot]];
    flow.served += flow.speed * static_cast<double>(now - flow.since);
    flow.since = now;
    Mark* const marks = &marks_[flow.marks];
    do {
      ended.push_back(marks->task);
      heap_pop(marks, flow.count--);
    } while (flow.count > 0 && ticks_until(marks->at - flow.served, flow.speed) == 0);
    flow.first_mark = marks->at;
    touch(flow, class_at_[slot]);
  }
}

Instant Sharing::next() {
  Instant first = never;
  hits_.clear();
  for (std::uint32_t slot = 0; slot < slots_used_; ++slot) {
    if (due_[slot] > first || due_[slot] == never) continue;
    if (due_[slot] < first) first = due_[slot], hits_.clear();
    hits_.push_back(slot);
  }
  for (const Burst& burst : bursts_) first = std::min(first, burst.spent_at);
  return first;
}

void Sharing::settle(Instant now) {
  if (touched_.empty() && bursts_.empty()) return;
  for (const std::uint32_t c : touched_) apply(flows_[c], c);
  drain(now);
  if (!changed_.empty()) recheck();
  if (listed_count_ > 0) {
    gather();
    fill(now);
  }
  for (const std::uint32_t c : touched_) {
    Flow& flow = flows_[c];
    // Not filled: new and unhindered, or nothing changed but the marks.
    if (flow.touched && flow.count > 0) run_at(flow, flow.speed > 0 ? flow.speed : 1, now);
    flow.touched = false;
  }
  touched_.clear();
  set_paces(now);
}

// Brings loads and user bits up to date with the number of flows.
void Sharing::apply(Flow& flow, std::uint32_t flow_class) {
  if (flow.count == flow.settled) return;
  const std::int64_t more = std::int64_t{flow.count} - std::int64_t{flow.settled};
  if (flow.settled == 0) take_slot(flow, flow_class);
  flow.settled = flow.count;
  for (std::uint32_t i = flow.first_share; i < flow.first_share + flow.share_count; ++i) {
    const FlowShare& share = shares_[i];
    const std::uint32_t resource = share.use / 2;
    const std::uint32_t before = flows_on_[share.use];
    load_[share.use] += more * load_of(share);
    flows_on_[share.use] = static_cast<std::uint32_t>(before + more);
    if (before == 0 || flows_on_[share.use] == 0) price_use(resource);
    set_term(i, flow);
    change(resource);
  }
  if (flow.count == 0) give_slot(flow);
}

void Sharing::set_term(std::uint32_t share, const Flow& flow) {
  const FlowShare& s = shares_[share];
  const double before = terms_[share].pull;
  terms_[share].pull = flow.pull * flow.settled * (s.fraction * cost_[s.use]);
  Pull& pull = pull_[s.use / 2];
  pull.sum += terms_[share].pull - before;
  pull.highest = std::max(pull.highest, pull.sum);
  ++pull.age;
}

void Sharing::take_slot(Flow& flow, std::uint32_t flow_class) {
  if (free_slots_.empty()) {
    flow.slot = static_cast<std::uint32_t>(slots_used_++);
  } else {
    flow.slot = free_slots_.back();
    free_slots_.pop_back();
  }
  class_at_[flow.slot] = flow_class;
  for (const FlowShare& share : used(flow)) {
    users_[share.use / 2 * words_ + flow.slot / 64] |= std::uint64_t{1} << flow.slot % 64;
  }
}

void Sharing::give_slot(Flow& flow) {
  for (const FlowShare& share : used(flow)) {
    users_[share.use / 2 * words_ + flow.slot / 64] &= ~(std::uint64_t{1} << flow.slot % 64);
  }
  due_[flow.slot] = never;
  free_slots_.push_back(flow.slot);
  flow.speed = 0;
}

void Sharing::change(std::uint32_t resource) {
  if (is_changed_[resource]) return;
  is_changed_[resource] = 1;
  changed_.push_back(resource);
}

void Sharing::price_use(std::uint32_t resource) {
  const Resource& r = resources_[resource];
  const bool is_mixed = flows_on_[2 * resource] > 0 && flows_on_[2 * resource + 1] > 0;
  const double first = is_mixed ? r.mixed_cost[0] : 1;
  const double second =
      (is_mixed ? r.mixed_cost[1] : 1) * (is_tired(resource) ? r.tired_cost : 1);
  if (first == cost_[2 * resource] && second == cost_[2 * resource + 1]) return;
  cost_[2 * resource] = first;
  cost_[2 * resource + 1] = second;
  for (std::size_t w = 0; w < words_; ++w) {
    each_bit(users_[resource * words_ + w], w, [&](std::uint32_t slot) {
      const Flow& flow = flows_[class_at_[slot]];
      for (std::uint32_t i = flow.first_share; i < flow.first_share + flow.share_count; ++i) {
        if (terms_[i].resource == resource) set_term(i, flow);
      }
    });
  }
}

// Lists the changed resources that limit somebody, before or after the change.
void Sharing::recheck() {
  for (const std::uint32_t r : changed_) {
    is_changed_[r] = 0;
    const double load = cost_[2 * r] * static_cast<double>(load_[2 * r]) +
                        cost_[2 * r + 1] * static_cast<double>(load_[2 * r + 1]);
    const bool was = is_contended_[r] != 0, is = load > just_full;
    if (!was && !is) continue;
    is_contended_[r] = is;
    contended_count_ = contended_count_ + (is ? 1 : 0) - (was ? 1 : 0);
    is_unlisted_[r] = 0;
    listed_[listed_count_++] = r;
  }
  changed_.clear();
}

}  // namespace tidegate
