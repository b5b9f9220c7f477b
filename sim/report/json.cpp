#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "sim/report/report.hpp"

namespace tidegate {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinities; what cannot be stated is null.
Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }
Json number(const std::optional<double>& v) { return v ? number(*v) : Json(nullptr); }
template <int B, int F, int S>
Json number(Quantity<B, F, S> v) {
  return number(v.value());
}

// Bytes of a pool or an owner are whole and print as such.
Json whole(Bytes v) {
  const double bytes = v.value();
  if (!(std::abs(bytes) < 0x1p62)) return number(v);
  return std::llround(bytes);
}

Json owners_json(const std::vector<Report::Owner>& owners) {
  Json list = Json::array();
  for (const auto& [name, bytes] : owners) list.push_back({{"name", name}, {"bytes", bytes}});
  return list;
}

Json phases_json(const PhaseTimes& phases) {
  Json json;
  for (std::size_t p = 0; p < phase_count; ++p) {
    json[std::string(name_of(static_cast<Phase>(p))) + "_s"] = number(phases[p]);
  }
  return json;
}

Json overflows_json(const Report& report) {
  Json list = Json::array();
  for (const Report::Overflow& o : report.overflows) {
    list.push_back({{"pool", o.pool},
                    {"task", o.task},
                    {"at_s", number(o.at)},
                    {"capacity_bytes", whole(o.capacity)},
                    {"held_bytes", whole(o.held)},
                    {"needed_bytes", whole(o.needed)},
                    {"owners", owners_json(o.owners)}});
  }
  return list;
}

Json iterations_json(const Report& report) {
  Json list = Json::array();
  for (const Iteration& i : report.iterations) {
    list.push_back({{"iteration_s", number(i.time())}, {"phases", phases_json(i.phases)}});
  }
  return list;
}

Json out_of_memory_json(const std::optional<Report::OutOfMemory>& failure) {
  if (!failure) return nullptr;
  return {{"task", failure->task},
          {"at_s", number(failure->at)},
          {"asked_bytes", whole(failure->asked)},
          {"allocated_bytes", whole(failure->allocated)},
          {"reserved_bytes", whole(failure->reserved)},
          {"unused_bytes", whole(failure->reserved - failure->allocated)},
          {"reason", failure->is_fragmentation ? "fragmentation" : "capacity"},
          {"fits_with_expandable_segments", failure->fits_expandable}};
}

Json allocator_json(const std::optional<Report::Allocator>& a) {
  if (!a) return nullptr;
  return {{"allocated_peak_bytes", whole(a->allocated_peak)},
          {"reserved_peak_bytes", whole(a->reserved_peak)},
          {"first_allocated_peak_bytes", whole(a->first_allocated_peak)},
          {"first_reserved_peak_bytes", whole(a->first_reserved_peak)},
          {"steady_allocated_peak_bytes", whole(a->steady_allocated_peak)},
          {"steady_reserved_peak_bytes", whole(a->steady_reserved_peak)},
          {"fragmentation_bytes", whole(a->fragmentation)},
          {"grows", a->grows},
          {"device_allocations", a->device_allocations},
          {"retries", a->retries},
          {"out_of_memory", out_of_memory_json(a->out_of_memory)}};
}

Json memory_timeline_json(const Report& report) {
  Json list = Json::array();
  for (const MemorySeries& s : report.memory_timeline) {
    Json at = Json::array(), owners = Json::array();
    for (const Instant t : s.at) at.push_back(number(to_seconds(t)));
    for (const auto& [name, bytes] : s.owners) owners.push_back({{"name", name}, {"bytes", bytes}});
    list.push_back({{"pool", s.pool},
                    {"at_s", at},
                    {"held_bytes", s.held},
                    {"reserved_bytes", s.reserved},
                    {"owners", owners}});
  }
  return list;
}

Json pools_json(const Report& report) {
  Json list = Json::array();
  for (const Report::Pool& p : report.pools) {
    list.push_back({{"name", p.name},
                    {"count", p.count},
                    {"peak_bytes", whole(p.peak)},
                    {"capacity_bytes", whole(p.capacity)},
                    {"steady_peak_bytes", whole(p.steady_peak)},
                    {"startup_peak_bytes", whole(p.startup_peak)},
                    {"training_peak_bytes", whole(p.training_peak)},
                    {"peak_at_s", number(p.peak_at)},
                    {"peak_task", p.peak_task},
                    {"owners", owners_json(p.owners)},
                    {"training_owners", owners_json(p.training_owners)},
                    {"allocator", allocator_json(p.allocator)}});
  }
  return list;
}

Json resources_json(const Report& report) {
  Json list = Json::array();
  for (const Report::Resource& r : report.resources) {
    list.push_back({{"name", r.name},
                    {"count", r.count},
                    {"busy_fraction", number(r.busy_fraction)},
                    {"work_fraction", number(r.work_fraction)},
                    {"exposed_s", number(r.exposed)},
                    {"work_s", number(r.work)},
                    {"bytes", number(r.bytes)}});
  }
  return list;
}

Json elasticities_json(const Report& report) {
  Json list = Json::array();
  for (const auto& [name, value] : report.elasticities) {
    list.push_back({{"name", name}, {"elasticity", number(value)}});
  }
  return list;
}

Json doubled_json(const std::optional<Report::Doubled>& doubled) {
  if (!doubled) return nullptr;
  Json json = {{"name", doubled->name}, {"iteration_s", number(doubled->iteration_time)}};
  json["next"] = doubled->next ? Json(doubled->next->name) : Json();
  json["next_elasticity"] = doubled->next ? number(doubled->next->value) : Json();
  return json;
}

Json fix_json(const Report::Fix& fix) {
  Json pools = Json::array();
  for (const auto& [name, peak, capacity, count] : fix.pools) {
    pools.push_back({{"name", name},
                     {"count", count},
                     {"peak_bytes", whole(peak)},
                     {"capacity_bytes", whole(capacity)}});
  }
  return {{"what", fix.what},
          {"set", fix.sets},
          {"iteration_s", number(fix.iteration_time)},
          {"tokens_per_s", number(fix.tokens_per_second)},
          {"slow_down", number(fix.slow_down)},
          {"pools", pools}};
}

Json fixes_json(const std::optional<Report::Fixes>& fixes) {
  if (!fixes) return nullptr;
  Json found = Json::array();
  for (const Report::Fix& fix : fixes->found) found.push_back(fix_json(fix));
  return {{"tried", fixes->tried},
          {"found", found},
          {"nearest", fixes->nearest ? fix_json(*fixes->nearest) : Json(nullptr)}};
}

Json critical_path_json(const Report& report) {
  Json tasks = Json::array();
  for (const auto& [name, time, count] : report.critical_tasks) {
    tasks.push_back({{"name", name}, {"time_s", number(time)}, {"count", number(count)}});
  }
  return {{"latency_s", number(report.latency)}, {"wait_s", number(report.wait)}, {"tasks", tasks}};
}

Json paths_json(const Report& report) {
  Json list = Json::array();
  for (const Report::Path& p : report.paths) {
    list.push_back({{"name", p.name},
                    {"read_bytes", number(p.read)},
                    {"written_bytes", number(p.written)},
                    {"written_bytes_per_day", number(p.written_per_day)},
                    {"life_years", number(p.life_years)},
                    {"drive_writes_per_day", number(p.drive_writes_per_day)},
                    {"rated_drive_writes_per_day", number(p.rated_drive_writes_per_day)},
                    {"write_amplification", number(p.write_amplification)},
                    {"rated_write_amplification", number(p.rated_write_amplification)}});
  }
  return list;
}

Json links_json(const Report& report) {
  Json list = Json::array();
  for (const auto& [name, bytes, count] : report.links) {
    list.push_back({{"name", name}, {"count", count}, {"bytes", number(bytes)}});
  }
  return list;
}

Json range_json(const std::optional<Report::Range>& range) {
  if (!range) return nullptr;
  return {{"low_s", number(range->low)},
          {"high_s", number(range->high)},
          {"level", 0.9},
          {"profile_deviation", range->profile_deviation},
          {"model_deviation", range->model_deviation},
          {"draws", range->draws},
          {"seed", range->seed},
          {"uncertain_values", range->uncertain},
          {"silent_values", range->silent}};
}

Json engine_remarks_json(const RunFacts& facts) {
  Json list = Json::array();
  for (const auto& [kind, key, at, text] : facts.engine_remarks)
    list.push_back({{"kind", kind}, {"key", key}, {"at", at}, {"text", text}});
  return list;
}

void add_facts(Json& json, const RunFacts& facts) {
  json["scenario"] = facts.scenario;
  json["policy"] = facts.policy;
  json["profile"] = facts.profile;
  json["revision"] = facts.revision;
}

void add_speed(Json& json, const Report& report) {
  constexpr double tera = 1e12;
  json["iteration_s"] = number(report.iteration_time);
  json["iteration_range"] = range_json(report.range);
  json["first_iteration_s"] = number(report.first_iteration_time);
  json["steady_iterations"] = report.steady_iterations;
  json["phases"] = phases_json(report.phases);
  json["iterations"] = iterations_json(report);
  json["drain_s"] = number(report.drain);
  json["tokens_per_s"] = number(report.tokens_per_second);
  json["tokens_per_iteration"] = report.facts.tokens_per_iteration;
  json["gpus"] = report.facts.gpus;
  json["tflops_per_gpu"] = number(report.model_rate_per_gpu.value() / tera);
  json["hardware_tflops_per_gpu"] = number(report.hardware_rate_per_gpu.value() / tera);
  json["model_flops"] = number(report.facts.model_flops);
  json["hardware_flops"] = number(report.facts.hardware_flops);
  json["parameters"] = report.facts.parameters;
  json["active_parameters"] = report.facts.active_parameters;
}

}  // namespace

std::string to_json(const Report& report) {
  Json json;
  json["schema"] = "tidegate.report/1";
  add_facts(json, report.facts);
  json["fits"] = report.fits;
  json["overflows"] = overflows_json(report);
  json["fixes"] = fixes_json(report.fixes);
  add_speed(json, report);
  json["pools"] = pools_json(report);
  json["resources"] = resources_json(report);
  json["critical_path"] = critical_path_json(report);
  json["elasticities"] = elasticities_json(report);
  json["doubled"] = doubled_json(report.doubled);
  json["bound_s"] = number(report.bound.time);
  json["bound"] = {{"limited_by", report.bound.limited_by},
                   {"chain_s", number(report.bound.chain)}};
  json["paths"] = paths_json(report);
  json["links"] = links_json(report);
  json["assumptions"] = report.facts.assumptions;
  json["notes"] = report.facts.notes;
  json["engine_remarks"] = engine_remarks_json(report.facts);
  json["memory_timeline"] = memory_timeline_json(report);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidegate
