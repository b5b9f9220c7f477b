#include "sim/engine/sharing.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "models/base/error.hpp"
#include "sim/engine/heap.hpp"

namespace tidegate {
namespace {

// Loads are rounded to 1 / full_load each; this much over is the rounding of many that just fit.
constexpr double just_full = static_cast<double>(full_load) + 64;

std::uint32_t root_of(std::vector<std::uint32_t>& parent, std::uint32_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

// The least of instants[0, count). Four lanes, because each waits for its last.
template <std::size_t count>
Instant least(const Instant* instants) {
  std::array<Instant, 4> lanes = {never, never, never, never};
  for (std::size_t i = 0; i < count; i += 4) {
    for (std::size_t j = 0; j < 4; ++j) lanes[j] = std::min(lanes[j], instants[i + j]);
  }
  return std::min(std::min(lanes[0], lanes[1]), std::min(lanes[2], lanes[3]));
}

}  // namespace

Sharing::Sharing(std::span<const Resource> resources, const FlowTable& table,
                 std::span<const std::uint32_t> most_flows, std::size_t most_running)
    : resources_(resources), shares_(table.shares), classes_(table.classes.size()) {
  std::size_t room = 0;
  for (const std::uint32_t most : most_flows) room += most;
  ensure(room < std::numeric_limits<std::uint32_t>::max(), "fewer than 2^32 flows run at a time");
  marks_.resize(room);
  terms_.reserve(shares_.size()), part_.reserve(shares_.size());
  for (const FlowShare& share : shares_) {
    terms_.push_back({{0, 1}, share.use / 2});
    part_.push_back(load_of(share));
  }
  std::uint32_t marks = 0;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const FlowClass& from = table.classes[c];
    classes_[c] = {from.pull, marks, from.first_share, from.share_count, no_slot};
    marks += most_flows[c];
    highest_pull_ = std::max(highest_pull_, from.pull);
  }
  // A slot is given back at settle: those of an instant's ends are still taken at its starts.
  reserve_slots(std::min(classes_.size(), 2 * most_running));
  const std::size_t count = resources.size();
  uses_.resize(2 * count), users_.resize(count * words_), pull_.resize(count),
      changed_.resize((count + 63) / 64);
  is_contended_.resize(count), is_plain_.resize(count);
  for (std::uint32_t r = 0; r < count; ++r) {
    const double full = resources[r].burst.value() * ticks_per_second;
    if (full > 0) bursts_.push_back({r, full, full, resources[r].recovery, 0, 0, never});
    is_plain_[r] = full <= 0 && resources[r].mixed_cost == std::array<double, 2>{1, 1};
  }
  join_components();
  const std::size_t places = (count + 3) / 4 * 4 + 1;
  for (auto* by_place : {&fill_.room, &fill_.last_sum, &fill_.worn, &fill_.full_at}) {
    by_place->resize(places);
  }
  fill_.open.resize(places), fill_.resource.resize(places);
  place_.assign(count, &fill_.open.back());
}

void Sharing::reserve_slots(std::size_t slots) {
  words_ = (slots + 63) / 64;
  const std::size_t groups = (slots + group - 1) / group;
  slots_.resize(slots), flows_.resize(slots), due_.assign(group * groups, never),
      group_due_.resize(groups);
  touched_.reserve(slots), free_slots_.reserve(slots);
  open_.resize(words_), every_slot_.assign(words_, ~std::uint64_t{0});
}

void Sharing::join_components() {
  const std::size_t count = resources_.size();
  std::vector<std::uint32_t> parent(count);
  std::iota(parent.begin(), parent.end(), 0);
  for (const Class& c : classes_) {
    for (std::uint32_t i = c.first_share + 1; i < c.first_share + c.share_count; ++i) {
      parent[root_of(parent, terms_[i].resource)] = root_of(parent, terms_[i - 1].resource);
    }
  }
  component_of_.resize(count), components_.resize(count), contended_.resize(count),
      dirty_.reserve(count);
  for (std::uint32_t r = 0; r < count; ++r) {
    component_of_[r] = root_of(parent, r);
    ++components_[component_of_[r]].count;
  }
  std::uint32_t first = 0;
  for (Component& component : components_) {
    component.first = first;
    first += component.count;
    component.count = 0;
  }
}

std::uint32_t Sharing::take_slot(std::uint32_t flow_class) {
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_used_++);
    words_used_ = (slots_used_ + 63) / 64;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  Class& c = classes_[flow_class];
  c.slot = slot;
  flows_[slot] = {flow_class, c.first_share, c.first_share + c.share_count, 0, 0, false};
  const Term* const first = terms_.data() + c.first_share;
  slots_[slot] = {0, 0, 0, 0, c.pull, first, first + c.share_count};
  for (const Term& term : terms(slots_[slot])) {
    users_[term.resource * words_ + slot / 64] |= std::uint64_t{1} << slot % 64;
    ++pull_[term.resource].part.terms;
  }
  return slot;
}

void Sharing::give_slot(std::uint32_t slot) {
  for (const Term& term : terms(slots_[slot])) {
    users_[term.resource * words_ + slot / 64] &= ~(std::uint64_t{1} << slot % 64);
    --pull_[term.resource].part.terms;
  }
  due_[slot] = never;
  classes_[flows_[slot].flow_class].slot = no_slot;
  free_slots_.push_back(slot);
}

void Sharing::touch(std::uint32_t slot, Instant now) {
  Slot& s = slots_[slot];
  s.served += s.speed * static_cast<double>(now - s.since);
  s.since = now;
  if (flows_[slot].is_touched) return;
  flows_[slot].is_touched = true;
  touched_.push_back(slot);
}

void Sharing::join(std::uint32_t flow_class, std::uint32_t task, double alone, Instant now) {
  const Class& c = classes_[flow_class];
  const std::uint32_t slot = c.slot == no_slot ? take_slot(flow_class) : c.slot;
  touch(slot, now);
  Slot& s = slots_[slot];
  if (flows_[slot].count == 0) s.served = 0;
  heap_push(&marks_[c.marks], flows_[slot].count++, {s.served + alone, task});
  s.first_mark = marks_[c.marks].at;
}

void Sharing::take_ended(Instant now, std::vector<std::uint32_t>& ended) {
  for (std::size_t g = 0; g * group < slots_used_; ++g) {
    if (group_due_[g] != now) continue;
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i < group; ++i) hits |= std::uint64_t{due_[g * group + i] == now} << i;
    for (; hits != 0; hits &= hits - 1) {
      const std::size_t slot = g * group + static_cast<std::size_t>(std::countr_zero(hits));
      take_ended_of(static_cast<std::uint32_t>(slot), now, ended);
    }
  }
}

void Sharing::take_ended_of(std::uint32_t slot, Instant now, std::vector<std::uint32_t>& ended) {
  touch(slot, now);
  Slot& s = slots_[slot];
  Flows& flows = flows_[slot];
  Mark* const marks = &marks_[classes_[flows.flow_class].marks];
  do {
    ended.push_back(marks->task);
    heap_pop(marks, flows.count--);
  } while (flows.count > 0 && ticks_until(marks->at - s.served, s.speed) == 0);
  s.first_mark = marks->at;
}

Instant Sharing::next() {
  Instant first = never;
  for (std::size_t slot = 0; slot < slots_used_; slot += group) {
    group_due_[slot / group] = least<group>(&due_[slot]);
    first = std::min(first, group_due_[slot / group]);
  }
  for (const Burst& burst : bursts_) first = std::min(first, burst.spent_at);
  return first;
}

void Sharing::settle(Instant now) {
  if (touched_.empty() && bursts_.empty()) return;
  for (const std::uint32_t slot : touched_) apply(slot);
  drain(now);
  recheck();
  for (const std::uint32_t c : dirty_) {
    components_[c].is_dirty = false;
    fill(components_[c], now);
  }
  dirty_.clear();
  run_touched(now);
  set_paces(now);
}

// Brings loads and terms up to date with the number of flows.
void Sharing::apply(std::uint32_t slot) {
  Flows& flows = flows_[slot];
  if (flows.count != flows.settled) {
    const std::int64_t more = std::int64_t{flows.count} - std::int64_t{flows.settled};
    flows.settled = flows.count;
    const double pull = slots_[slot].pull * flows.settled;
    for (std::uint32_t i = flows.first_share; i < flows.last_share; ++i) {
      const FlowShare& share = shares_[i];
      const std::uint32_t resource = share.use / 2;
      Use& use = uses_[share.use];
      const std::uint32_t before = use.flows;
      use.load += more * part_[i];
      use.flows = static_cast<std::uint32_t>(before + more);
      if (!is_plain_[resource] && (before == 0 || use.flows == 0)) price_use(resource);
      set_term(terms_[i], pull_[resource], pull * (share.fraction * use.cost));
      change(resource);
    }
  }
  if (flows.count == 0) give_slot(slot);
}

void Sharing::set_term(Term& term, Pull& pull, double after) {
  pull.part.sum += after - term.part.sum;
  pull.highest = std::max(pull.highest, pull.part.sum);
  ++pull.age;
  term.part.sum = after;
}

void Sharing::price_use(std::uint32_t resource) {
  const Resource& r = resources_[resource];
  Use &side_0 = uses_[2 * resource], &side_1 = uses_[2 * resource + 1];
  const bool is_mixed = side_0.flows > 0 && side_1.flows > 0;
  const double first = is_mixed ? r.mixed_cost[0] : 1;
  const double second = (is_mixed ? r.mixed_cost[1] : 1) * (is_tired(resource) ? r.tired_cost : 1);
  if (first == side_0.cost && second == side_1.cost) return;
  side_0.cost = first;
  side_1.cost = second;
  for (std::size_t w = 0; w < words_used_; ++w) {
    each_bit(users_[resource * words_ + w], w, [&](std::uint32_t slot) {
      for (std::uint32_t i = flows_[slot].first_share; i < flows_[slot].last_share; ++i) {
        if (terms_[i].resource != resource) continue;
        const double pull = slots_[slot].pull * flows_[slot].settled;
        const FlowShare& share = shares_[i];
        set_term(terms_[i], pull_[resource], pull * (share.fraction * uses_[share.use].cost));
      }
    });
  }
}

void Sharing::recheck() {
  for (std::size_t w = 0; w < changed_.size(); ++w) {
    each_bit(changed_[w], w, [&](std::uint32_t r) { recheck(r); });
    changed_[w] = 0;
  }
}

// Lists a contended resource with its component, which is to be filled again if the resource limits
// somebody before or after the change.
void Sharing::recheck(std::uint32_t resource) {
  const Use &side_0 = uses_[2 * resource], &side_1 = uses_[2 * resource + 1];
  const double load = side_0.cost * static_cast<double>(side_0.load) +
                      side_1.cost * static_cast<double>(side_1.load);
  const bool was = is_contended_[resource] != 0, is = load > just_full;
  if (!was && !is) return;
  Component& component = components_[component_of_[resource]];
  is_contended_[resource] = is;
  if (is && !was) contended_[component.first + component.count++] = resource;
  if (component.is_dirty) return;
  component.is_dirty = true;
  dirty_.push_back(component_of_[resource]);
}

}  // namespace tidegate
