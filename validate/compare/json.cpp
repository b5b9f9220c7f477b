#include <nlohmann/json.hpp>

#include "validate/compare/comparison.hpp"

namespace tidegate {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const Pair& time) {
  return {{"predicted_s", time.predicted.value()},
          {"measured_s", time.measured.value()},
          {"error", time.error() ? ordered_json(*time.error()) : ordered_json()}};
}

ordered_json to_json(const std::vector<Group>& groups) {
  ordered_json list = ordered_json::array();
  for (const Group& g : groups) {
    ordered_json row{{"name", g.name}, {"tasks", g.tasks}};
    row.update(to_json(g.time));
    list.push_back(std::move(row));
  }
  return list;
}

ordered_json phases_json(const Comparison& c) {
  ordered_json phases = ordered_json::object();
  for (std::size_t p = 0; p < phase_count; ++p) {
    phases[name_of(static_cast<Phase>(p))] = to_json(c.phases[p]);
  }
  return phases;
}

ordered_json suspects_json(const Comparison& c) {
  ordered_json list = ordered_json::array();
  for (const Suspect& s : c.suspects) {
    list.push_back({{"device", s.device},
                    {"tasks", s.tasks},
                    {"ratio", s.ratio},
                    {"spread", s.spread},
                    {"exposed_s", s.exposed.value()}});
  }
  return list;
}

ordered_json flips_json(const Comparison& c) {
  ordered_json list = ordered_json::array();
  for (const Flip& f : c.flips) {
    list.push_back({{"of", f.of},
                    {"first", f.first},
                    {"second", f.second},
                    {"predicted_s", f.predicted.value()},
                    {"measured_s", f.measured.value()}});
  }
  return list;
}

ordered_json interval_json(const Comparison& c) {
  if (!c.interval) return nullptr;
  return {{"low_s", c.interval->low.value()},
          {"high_s", c.interval->high.value()},
          {"contains_measured", c.interval->contains(c.step.measured)}};
}

}  // namespace

std::string to_json(const Comparison& c) {
  ordered_json pools = ordered_json::array();
  for (const PoolPeak& p : c.pools) {
    pools.push_back({{"name", p.name},
                     {"predicted_peak_bytes", p.predicted},
                     {"measured_peak_bytes", p.measured},
                     {"predicted_peak_at_s", p.predicted_at.value()},
                     {"measured_peak_at_s", p.measured_at.value()}});
  }
  const ordered_json json{{"verdict", name_of(c.verdict)},
                          {"gate", c.gate},
                          {"floor", c.floor},
                          {"iteration", to_json(c.step)},
                          {"interval", interval_json(c)},
                          {"remarks", c.remarks},
                          {"phases", phases_json(c)},
                          {"tasks", to_json(c.kinds)},
                          {"lanes", to_json(c.lanes)},
                          {"critical_path", to_json(c.path)},
                          {"suspects", suspects_json(c)},
                          {"reordered_lanes", c.reordered},
                          {"choices", c.choices},
                          {"other_choices", c.other_choices},
                          {"flips", flips_json(c)},
                          {"pools", std::move(pools)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tidegate
