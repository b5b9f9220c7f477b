#include <algorithm>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "calib/measure/protocol.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* schema = "tidegate.samples/1";

Json head_of(const Measurements& m) {
  Json head = {{"schema", schema},       {"passes", m.passes},   {"accepted", m.accepted},
               {"rejected", m.rejected}, {"seconds", m.seconds}, {"complete", m.is_complete}};
  if (!m.host.empty()) head["host"] = m.host;
  return head;
}

Json row_json(const RowResult& r) {
  Json at = Json::array();
  for (const auto& [name, value] : r.row.at) at.push_back({name, value});
  return {{"row", r.row.quantity},
          {"at", at},
          {"unit", static_cast<int>(r.row.unit)},
          {"gate", static_cast<int>(r.row.gate)},
          {"device", r.row.device},
          {"ceiling", r.row.ceiling},
          {"ceiling_from", r.row.ceiling_from},
          {"faults", r.faults}};
}

Json block_json(std::size_t row, const Block& b) {
  Json samples = Json::array();
  for (const TakenSample& s : b.samples) {
    Json one = {{"v", s.value}, {"at", s.at}, {"s", s.elapsed}};
    if (!s.spoiled.empty()) one["spoiled"] = s.spoiled;
    if (!s.series.empty()) one["series"] = s.series;
    samples.push_back(std::move(one));
  }
  return {{"of", row}, {"pass", b.pass}, {"converged", b.is_converged}, {"samples", samples}};
}

template <class Enum>
Enum kind_of(const Json& json, Enum last) {
  const int code = json.get<int>();
  if (code < 0 || code > static_cast<int>(last)) throw std::runtime_error("an unknown kind");
  return static_cast<Enum>(code);
}

RowResult read_row(const Json& json) {
  RowResult r;
  r.row.quantity = json.at("row").get<std::string>();
  for (const Json& pair : json.at("at")) {
    r.row.at.emplace_back(pair.at(0).get<std::string>(), pair.at(1).get<double>());
  }
  r.row.unit = kind_of(json.at("unit"), Unit::fraction);
  r.row.gate = kind_of(json.at("gate"), Gate::io);
  r.row.device = json.at("device").get<std::string>();
  r.row.ceiling = json.at("ceiling").get<double>();
  r.row.ceiling_from = json.at("ceiling_from").get<std::string>();
  r.faults = json.at("faults").get<std::vector<std::string>>();
  return r;
}

Block read_block(const Json& json) {
  Block b{.pass = json.at("pass").get<std::int32_t>(),
          .is_converged = json.at("converged").get<bool>(),
          .samples = {}};
  for (const Json& one : json.at("samples")) {
    TakenSample s{.value = one.at("v").get<double>(),
                  .at = one.at("at").get<double>(),
                  .elapsed = one.at("s").get<double>(),
                  .spoiled = {},
                  .series = {}};
    if (one.contains("spoiled")) s.spoiled = one.at("spoiled").get<std::string>();
    if (one.contains("series")) s.series = one.at("series").get<std::vector<double>>();
    b.samples.push_back(std::move(s));
  }
  return b;
}

void read_line(const Json& json, Measurements& m) {
  if (json.contains("schema")) {
    if (json.at("schema").get<std::string>() != schema) throw std::runtime_error("another schema");
    m.passes = json.at("passes").get<std::int32_t>();
    m.accepted = json.at("accepted").get<std::int64_t>();
    m.rejected = json.at("rejected").get<std::int64_t>();
    m.seconds = json.at("seconds").get<double>();
    m.is_complete = json.at("complete").get<bool>();
    m.host = json.value("host", "");
  } else if (json.contains("row")) {
    m.rows.push_back(read_row(json));
  } else if (json.contains("of")) {
    m.rows.at(json.at("of").get<std::size_t>()).blocks.push_back(read_block(json));
  } else {
    m.canaries.push_back({json.at("canary").get<std::string>(),
                          json.at("at").get<std::vector<double>>(),
                          json.at("value").get<std::vector<double>>()});
  }
}

}  // namespace

std::string to_lines(const Measurements& m) {
  std::string out = head_of(m).dump() + "\n";
  for (const Canary& c : m.canaries) {
    out += Json{{"canary", c.name}, {"at", c.at}, {"value", c.value}}.dump() + "\n";
  }
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    out += row_json(m.rows[i]).dump() + "\n";
    for (const Block& b : m.rows[i].blocks) out += block_json(i, b).dump() + "\n";
  }
  return out;
}

Measurements read_lines(const std::string& text, const std::string& name) {
  Measurements m;
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    try {
      read_line(Json::parse(line), m);
    } catch (const std::exception&) {
      throw InputError({name, number, 1}, "",
                       number == 1
                           ? "is no file of samples of tidegate calib"
                           : "is not a line of samples; the file is damaged, measure again");
    }
  }
  if (number == 0) throw InputError({name, 1, 1}, "", "is empty; measure again without --resume");
  return m;
}

std::string fingerprint(const std::string& lines) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : lines) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace tidegate::calib
