#include <optional>

#include <nlohmann/json.hpp>

#include "validate/published.hpp"

namespace tidegate {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json sets_json(const Published& p) {
  Json sets = Json::array();
  for (const RunSet& s : p.sets) {
    sets.push_back(
        {{"set", s.name}, {"title", s.title}, {"source", s.source}, {"profile", s.profile}});
  }
  return sets;
}

Json range_json(const PublishedRow& r) {
  const auto range = r.range();
  return range ? Json{range->first, range->second} : Json();
}

Json rows_json(const Published& p) {
  Json rows = Json::array();
  for (const PublishedRow& r : p.rows) {
    rows.push_back({{"set", p.sets[r.set].name},
                    {"case", r.case_name},
                    {"variant", r.variant},
                    {"quantity", r.quantity},
                    {"unit", r.unit},
                    {"predicted", r.predicted},
                    {"measured", r.measured},
                    {"relative_error", r.relative_error()},
                    {"in_sample", r.in_sample},
                    {"range", range_json(r)},
                    {"profile_deviation", json_of(r.profile_deviation)},
                    {"gated", r.gate.has_value()},
                    {"gate", json_of(r.gate)}});
  }
  return rows;
}

Json model_rows_json(const Published& p) {
  Json rows = Json::array();
  for (const ModelRow& r : p.model_rows) {
    rows.push_back({{"run", r.run},
                    {"quantity", r.quantity},
                    {"unit", r.unit},
                    {"predicted", r.predicted},
                    {"published", r.published},
                    {"relative_error", r.relative_error()},
                    {"recalled", r.is_recalled},
                    {"gated", r.gate.has_value()},
                    {"gate", json_of(r.gate)}});
  }
  return rows;
}

Json bands_json(const Published& p) {
  Json bands = Json::array();
  for (const Band& b : p.bands) {
    bands.push_back({{"band", b.name},
                     {"claim", b.claim},
                     {"source", b.source},
                     {"low", b.low},
                     {"high", b.high},
                     {"value", b.value},
                     {"holds", b.holds()},
                     {"gated", b.is_gated},
                     {"recalled", b.is_recalled},
                     {"in_sample", b.in_sample}});
  }
  return bands;
}

Json summary_json(const Published& p) {
  Json summary = Json::array();
  for (const PublishedSummary& s : p.summary) {
    summary.push_back({{"what", s.what},
                       {"rows", s.rows},
                       {"mean_absolute_error", s.mean},
                       {"worst_absolute_error", s.worst},
                       {"worst_row", s.worst_row}});
  }
  return summary;
}

Json coverage_json(const Published& p) {
  Json list = Json::array();
  for (const PublishedCoverage& c : p.coverage) {
    list.push_back({{"what", c.what}, {"rows", c.rows}, {"inside", c.inside}});
  }
  return list;
}

}  // namespace

std::string to_json(const Published& p) {
  const RunSet first = p.sets.empty() ? RunSet{} : p.sets.front();
  const Json all = {{"schema", "tidegate.published/1"},
                    {"title", first.title},
                    {"source", first.source},
                    {"profile", first.profile},
                    {"sets", sets_json(p)},
                    {"rows", rows_json(p)},
                    {"model_title", p.model_title},
                    {"model_source", p.model_source},
                    {"model_rows", model_rows_json(p)},
                    {"band_title", p.band_title},
                    {"bands", bands_json(p)},
                    {"summary", summary_json(p)},
                    {"coverage", coverage_json(p)},
                    {"model_deviation", json_of(p.model_deviation)},
                    {"gated", p.gated},
                    {"missed", p.missed},
                    {"notes", p.notes}};
  return all.dump(2) + "\n";
}

}  // namespace tidegate
