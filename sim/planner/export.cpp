#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/planner/words.hpp"
#include "sim/search/explain.hpp"

namespace tidegate::planner {
namespace {

using nlohmann::ordered_json;
using State = Assessment::State;

const char* name_of(State state) {
  switch (state) {
    case State::trained:
      return "trained";
    case State::refused:
      return "refused";
    case State::does_not_fit:
      return "does_not_fit";
    case State::cannot_win:
      return "cannot_win";
    case State::over_budget:
      return "over_budget";
    case State::stopped:
      return "stopped";
  }
  return "";
}

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}
template <class T>
ordered_json optional_json(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json costs_json(const Comparison& c, const Assessment& a) {
  return {{"total", a.costs.total()},
          {"per_million_tokens", c.per_million(a)},
          {"capital", a.costs.capital},
          {"energy", a.costs.energy},
          {"replacement", a.costs.replacement},
          {"rent", a.costs.rent},
          {"outlay", a.costs.outlay()},
          {"energy_kwh", a.costs.kilowatt_hours},
          {"draw_w", a.costs.draw}};
}

void add_training(ordered_json& json, const Comparison& c, const Assessment& a) {
  json["iteration_s"] = a.iteration_time.value();
  json["tokens_per_second"] = a.tokens_per_second;
  json["interval_s"] = nullptr;
  if (a.range) json["interval_s"] = {a.range->low.value(), a.range->high.value()};
  json["days"] = a.days();
  json["costs"] = costs_json(c, a);
  json["drive_life_years"] = optional_json(a.usage.drive_life_years);
  json["busy"] = {{"gpu", a.usage.gpu},
                  {"cores", a.usage.cores},
                  {"memory", a.usage.memory},
                  {"drives", a.usage.drives},
                  {"network", a.usage.network}};
  json["binding"] = ordered_json::array();
  for (const auto& [name, value] : a.binding)
    json["binding"].push_back({{"name", name}, {"elasticity", number(value)}});
  json["policy"] = a.policy;
  json["layout"] = a.layout;
  json["changes"] = a.changes;
  json["simulated"] = a.simulated;
  json["proved"] = a.is_proved;
  json["sets"] = ordered_json::array();
  for (const auto& [key, value] : a.sets) json["sets"].push_back(key + "=" + value);
}

ordered_json machine_json(const Comparison& c, const Assessment& a) {
  const Build& b = a.build;
  ordered_json json = {{"name", b.name},
                       {"state", name_of(a.state)},
                       {"reason", a.reason},
                       {"note", a.note},
                       {"nodes", b.nodes},
                       {"gpus_per_node", b.gpus},
                       {"drives_per_node", b.drives},
                       {"memory_bytes_per_node", b.memory.value()},
                       {"purchase", a.bill.purchase()},
                       {"rent_per_hour", optional_json(a.bill.rent)}};
  if (a.is_trained()) add_training(json, c, a);
  if (a.state == State::cannot_win) json["most_tokens_per_second"] = a.most_tokens_per_second;
  return json;
}

ordered_json upgrades_json(const Comparison& c) {
  ordered_json list = ordered_json::array();
  for (const Upgrade& s : c.upgrades) {
    list.push_back({{"from", s.from},
                    {"to", s.to},
                    {"what", s.what},
                    {"gain_tokens_per_second", s.gain},
                    {"days_saved", s.days},
                    {"price", s.price},
                    {"gain_per_1000", optional_json(s.per_thousand)}});
  }
  return list;
}

ordered_json sources_json(const Comparison& c) {
  ordered_json list = ordered_json::array();
  for (const Provenance& p : c.sources) {
    list.push_back(
        {{"key", p.key}, {"value", p.value}, {"source", p.source}, {"assumed", p.assumed}});
  }
  return list;
}

}  // namespace

std::string to_json(const Comparison& c) {
  ordered_json json = {{"schema", "tidegate.plan/1"},
                       {"scenario", c.scenario},
                       {"revision", c.revision},
                       {"catalog", c.catalog},
                       {"date", c.date},
                       {"currency", c.currency},
                       {"example", c.is_example},
                       {"terms",
                        {{"years", c.terms.years},
                         {"utilization", c.terms.utilization},
                         {"energy_per_kwh", c.terms.energy},
                         {"pue", c.terms.pue}}},
                       {"tokens", c.tokens},
                       {"sequences", c.sequences},
                       {"tokens_per_iteration", c.tokens_per_iteration},
                       {"days_limit", optional_json(c.days)},
                       {"budget", optional_json(c.budget)},
                       {"margin", c.margin},
                       {"interrupted", c.is_interrupted},
                       {"answer", optional_json(c.answer)},
                       {"alike", c.alike},
                       {"front", c.front}};
  json["machines"] = ordered_json::array();
  for (const Assessment& a : c.machines) json["machines"].push_back(machine_json(c, a));
  json["upgrades"] = upgrades_json(c);
  json["sources"] = sources_json(c);
  return json.dump(2) + "\n";
}

std::string to_csv(const Comparison& c) {
  std::string text =
      "machine,state,reason,nodes,gpus_per_node,drives_per_node,memory_bytes_per_node,purchase,"
      "tokens_per_second,days,cost,cost_per_million_tokens,capital,energy,replacement,rent,"
      "energy_kwh,drive_life_years,binds,front\n";
  for (std::size_t i = 0; i < c.machines.size(); ++i) {
    const Assessment& a = c.machines[i];
    const Build& b = a.build;
    text += fmt::format("{},{},{},{},{},{},{},{},", csv_field(b.name), name_of(a.state),
                        csv_field(a.reason), b.nodes, b.gpus, b.drives, b.memory.value(),
                        a.bill.purchase());
    if (!a.is_trained()) {
      text += ",,,,,,,,,,,false\n";
      continue;
    }
    const bool is_front = std::ranges::find(c.front, i) != c.front.end();
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", a.tokens_per_second, a.days(),
                    a.costs.total(), c.per_million(a), a.costs.capital, a.costs.energy,
                    a.costs.replacement, a.costs.rent, a.costs.kilowatt_hours,
                    a.usage.drive_life_years ? fmt::format("{}", *a.usage.drive_life_years) : "",
                    a.binding.empty() ? "" : csv_field(a.binding.front().name), is_front);
  }
  return text;
}

}  // namespace tidegate::planner
