#include <nlohmann/json.hpp>

#include "validate/log/comparison.hpp"

namespace tidegate {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Measured& m) {
  return {{"median", m.median},
          {"low", m.low},
          {"high", m.high},
          {"most", m.most},
          {"values", m.values}};
}

Json json_of(const LogRow& r) {
  return {{"name", r.name},
          {"unit", r.unit},
          {"predicted", r.predicted},
          {"measured", json_of(r.measured)},
          {"error", r.error() ? Json(*r.error()) : Json()},
          {"note", r.note}};
}

Json json_of(const LogMismatch& m) {
  return {{"what", m.what},
          {"logged", m.logged},
          {"scenario", m.scenario},
          {"at", m.where.line > 0 ? to_text(m.where) : ""},
          {"how", m.how}};
}

template <class Values, class Make>
Json list_of(const Values& values, Make&& make) {
  Json list = Json::array();
  for (const auto& v : values) list.push_back(make(v));
  return list;
}

}  // namespace

std::string to_json(const LogComparison& c) {
  const auto plain = [](const auto& v) { return json_of(v); };
  Json json = {
      {"schema", "tidegate.log/1"},
      {"scenario", c.scenario},
      {"profile", c.profile},
      {"log", c.file},
      {"writers", c.writers},
      {"is_run_average", c.is_run_average},
      {"iterations", c.iterations},
      {"skipped", c.skipped},
      {"rank", c.rank},
      {"ranks", c.ranks},
      {"rank_ratio", c.rank_ratio},
      {"rows", list_of(c.rows, plain)},
      {"mismatches", list_of(c.mismatches, plain)},
      {"only_logged",
       list_of(c.only_logged,
               [](const LogOnly& o) {
                 return Json{{"name", o.name}, {"measured_s", json_of(o.seconds)}, {"why", o.why}};
               })},
      {"only_predicted", c.only_predicted},
      {"explanations", c.explanations},
      {"notes", c.notes},
      {"damaged", list_of(c.damaged,
                          [](const Problem& p) {
                            return Json{{"at", to_text(p.where)}, {"key", p.key}, {"text", p.text}};
                          })},
      {"next", c.next}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidegate
