#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/search/explain.hpp"
#include "sim/search/grid.hpp"
#include "sim/search/pool.hpp"

namespace tidegate {
namespace {

using nlohmann::ordered_json;

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr);
}

ordered_json candidate_json(const Candidate& c) {
  ordered_json json;
  json["sets"] = ordered_json::array();
  for (const auto& [key, value] : c.sets) json["sets"].push_back(key + "=" + value);
  json["changes"] = c.changes;
  json["trouble"] = trouble_of(c);
  if (c.screening.refusal.empty()) {
    json["bound_s"] = number(c.screening.bound.time.value());
    json["bound_limited_by"] = c.screening.bound.limited_by;
  }
  if (!c.trial) return json;
  json["iteration_s"] = c.trial->iteration_time.value();
  json["tokens_per_second"] = c.trial->tokens_per_second;
  json["fits"] = c.trial->fits;
  json["pools"] = ordered_json::array();
  for (const Need& need : c.trial->needs) {
    json["pools"].push_back({{"name", need.pool},
                             {"needed_bytes", need.bytes.value()},
                             {"capacity_bytes", number(need.capacity.value())}});
  }
  json["paths"] = ordered_json::array();
  for (const Trial::Wear& wear : c.trial->wear) {
    json["paths"].push_back(
        {{"name", wear.path},
         {"written_per_day_bytes", wear.written_per_day.value()},
         {"life_years", wear.life_years ? ordered_json(*wear.life_years) : ordered_json(nullptr)}});
  }
  return json;
}

ordered_json shifts_json(const std::vector<Explanation::Shift>& shifts) {
  ordered_json list = ordered_json::array();
  for (const Explanation::Shift& s : shifts) {
    list.push_back(
        {{"name", s.name}, {"before_s", s.before.value()}, {"after_s", s.after.value()}});
  }
  return list;
}

ordered_json counts_json(const Tuning::Counts& n) {
  return {{"space", n.space},           {"crossed", n.crossed},
          {"screened", n.screened},     {"refused", n.refused},
          {"cannot_fit", n.cannot_fit}, {"over_limits", n.over_limits},
          {"cannot_win", n.cannot_win}, {"open", n.open},
          {"simulated", n.simulated},   {"resumed", n.resumed},
          {"fitting", n.fitting}};
}

template <class T>
ordered_json optional_json(const std::optional<T>& c) {
  return c ? candidate_json(*c) : ordered_json(nullptr);
}

ordered_json crossing_json(const TuneReport& r) {
  const auto crossing = r.is_grid ? crossing_of(r) : std::nullopt;
  if (!crossing) return nullptr;
  ordered_json json = {{"key", crossing->key}, {"over", crossing->over}};
  json["ranges"] = ordered_json::array();
  for (const Crossing::Range& range : crossing->ranges) {
    json["ranges"].push_back({{"from", range.from},
                              {"to", range.to},
                              {"fastest", range.fastest},
                              {"next", range.next},
                              {"next_least", range.least},
                              {"next_most", range.most}});
  }
  return json;
}

}  // namespace

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string to_json(const TuneReport& r) {
  const Tuning& t = r.tuning;
  ordered_json json = {{"schema", "tidegate.tune/1"},
                       {"scenario", r.scenario},
                       {"profile", r.profile},
                       {"revision", r.revision},
                       {"margin", t.margin},
                       {"interrupted", t.is_interrupted},
                       {"proved", t.is_proved},
                       {"bound_s", r.is_grid ? ordered_json(nullptr) : number(t.bound.value())},
                       {"today", t.today.trial ? candidate_json(t.today) : ordered_json(nullptr)},
                       {"best", optional_json(t.best)},
                       {"simplest", optional_json(t.simplest)}};
  json["why"] = ordered_json::object();
  if (!r.why_best.empty()) {
    json["why"] = {{"phases", shifts_json(r.why_best.front().phases)},
                   {"exposed", shifts_json(r.why_best.front().exposed)}};
  }
  json["effects"] = ordered_json::array();
  for (const Tuning::Effect& e : t.effects) {
    json["effects"].push_back({{"axis", e.axis},
                               {"alternative", e.sets},
                               {"change", e.change},
                               {"is_changed", e.is_changed},
                               {"trouble", e.trouble}});
  }
  json["crossing"] = crossing_json(r);
  json["counts"] = counts_json(t.counts);
  json["refusals"] = t.refusals;
  json["candidates"] = ordered_json::array();
  for (const Candidate& c : t.all) json["candidates"].push_back(candidate_json(c));
  return json.dump(2) + "\n";
}

std::string to_csv(const TuneReport& r) {
  std::string text = "sets,changes,fits,trouble,iteration_s,tokens_per_second,bound_s\n";
  for (const Candidate& c : r.tuning.all) {
    std::string sets;
    for (const auto& [key, value] : c.sets) sets += (sets.empty() ? "" : " ; ") + key + "=" + value;
    text += fmt::format("{},{},{},{},", csv_field(sets), c.changes.size(),
                        c.trial ? (c.is_acceptable() ? "true" : "false") : "",
                        csv_field(trouble_of(c)));
    text += c.trial
                ? fmt::format("{},{},", c.trial->iteration_time.value(), c.trial->tokens_per_second)
                : ",,";
    const double bound = c.screening.bound.time.value();
    text += (c.screening.refusal.empty() ? fmt::format("{}", bound) : "") + "\n";
  }
  return text;
}

}  // namespace tidegate
