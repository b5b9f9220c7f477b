#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "sim/run/aio.hpp"

/// An AioTable for people and for programs.
namespace tidegate {
namespace {

using Json = nlohmann::ordered_json;

std::string rate_text(BytesPerSecond rate) {
  return rate > BytesPerSecond(0) ? to_text(rate) : "-";
}

std::string rates_text(const AioPath& path) {
  const std::string all = fmt::format("{} ranks", path.ranks);
  Table table{.header = {"in flight of a rank", "1 rank reads", "writes", all + " read", "write"},
              .rows = {},
              .align = {}};
  // Below half there is nothing to gain from being exact; above what is enough nothing at all.
  for (const AioRates& r : path.rates) {
    table.rows.push_back({to_text(r.in_flight), rate_text(r.read), rate_text(r.write),
                          rate_text(r.read_together), rate_text(r.write_together)});
    if (path.enough && r.in_flight > *path.enough * 8) break;
  }
  return to_text(table);
}

std::string path_text(const AioPath& path, double margin, std::size_t width) {
  std::string text = wrap(
      fmt::format("{}: reads {}, writes {}; one rank reaches half of it with {} in flight ({}).",
                  path.name, to_text(path.read), to_text(path.write), to_text(path.half),
                  path.half_source.empty() ? "of the profile" : path.half_source),
      width);
  text += "\n\n" + rates_text(path) + "\n";
  const AioRates& now = path.at_now;
  text += wrap(fmt::format(
                   "Now: block_size {} x queue_depth {} x thread_count {} = {}, of transfers of {} "
                   "at most: one rank reads {} and writes {}, {} read {} and write {}.",
                   to_text(path.now.block), path.now.depth, path.now.threads,
                   to_text(path.now.in_flight()), to_text(path.transfer), rate_text(now.read),
                   rate_text(now.write), path.ranks, rate_text(now.read_together),
                   rate_text(now.write_together)),
               width) +
          "\n";
  if (!path.enough) {
    return text +
           wrap(fmt::format("No setting of the table reaches the path's rates within {:g} %.",
                            100 * margin),
                width) +
           "\n";
  }
  return text +
         wrap(fmt::format(
                  "Enough: {} in flight of each rank. More gains less than {:g} % when all {} "
                  "ranks use the path at once.",
                  to_text(*path.enough), 100 * margin, path.ranks),
              width) +
         "\n";
}

Json bytes_json(Bytes bytes) { return std::llround(bytes.value()); }

// Of a direction that nobody uses there is no rate.
Json rate_json(BytesPerSecond rate) {
  return rate > BytesPerSecond(0) ? Json(rate.value()) : Json(nullptr);
}

Json rates_json(const AioRates& r) {
  return {{"in_flight_bytes", bytes_json(r.in_flight)},
          {"read_bytes_per_s", rate_json(r.read)},
          {"write_bytes_per_s", rate_json(r.write)},
          {"read_together_bytes_per_s", rate_json(r.read_together)},
          {"write_together_bytes_per_s", rate_json(r.write_together)}};
}

Json path_json(const AioPath& path) {
  Json rates = Json::array();
  for (const AioRates& r : path.rates) rates.push_back(rates_json(r));
  return {{"name", path.name},
          {"read_bytes_per_s", rate_json(path.read)},
          {"write_bytes_per_s", rate_json(path.write)},
          {"half_bytes", bytes_json(path.half)},
          {"half_source", path.half_source},
          {"transfer_bytes", bytes_json(path.transfer)},
          {"ranks", path.ranks},
          {"block_size_bytes", bytes_json(path.now.block)},
          {"queue_depth", path.now.depth},
          {"thread_count", path.now.threads},
          {"now", rates_json(path.at_now)},
          {"enough_bytes", path.enough ? bytes_json(*path.enough) : Json(nullptr)},
          {"rates", rates}};
}

}  // namespace

std::string to_text(const AioTable& table, std::size_t width) {
  std::string text =
      wrap(fmt::format("{} · {} · {}", table.scenario, table.profile, table.revision), width) +
      "\n\n";
  if (table.paths.empty()) return text + "Nothing is kept in files: aio has no say.\n";
  for (const AioPath& path : table.paths) text += path_text(path, table.margin, width) + "\n";
  return text +
         wrap(
             "In this model only block_size x queue_depth x thread_count counts. Blocks below 128 "
             "KiB "
             "run into a drive's requests per second, which is not in it; nor is what "
             "single_submit, "
             "overlap_events and use_gds change, nor the CPU time of submitting. A value that is "
             "assumed makes this table an assumption: tidegate calib --storage DIR --full measures "
             "it.",
             width) +
         "\n";
}

std::string to_json(const AioTable& table) {
  Json paths = Json::array();
  for (const AioPath& path : table.paths) paths.push_back(path_json(path));
  const Json json = {{"schema", "tidegate.aio/1"}, {"scenario", table.scenario},
                     {"profile", table.profile},   {"revision", table.revision},
                     {"margin", table.margin},     {"paths", paths}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidegate
