#include "sim/search/results.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "models/base/error.hpp"
#include "sim/run/predict.hpp"

namespace tidegate {
namespace {

using nlohmann::ordered_json;

constexpr const char* schema = "tidegate.tune_results/1";

std::vector<std::string> texts_of(const std::vector<Override>& sets) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : sets) texts.push_back(key + "=" + value);
  return texts;
}

void write_value(std::string& text, const yaml::Value& value) {
  text += value.text + "\n";
  for (const yaml::Entry& entry : value.entries) {
    text += entry.key + ":";
    write_value(text, entry.value);
  }
  for (const yaml::Value& item : value.items) write_value(text, item);
}

// 64-bit FNV-1a of everything that results depend on.
std::string fingerprint_of(const Evaluator& evaluator) {
  std::string text = revision();
  write_value(text, evaluator.values());
  const Scenario scenario = evaluator.scenario({});
  for (const Provenance& p : scenario.machine.provenance()) text += p.key + "=" + p.value + "\n";
  text += fmt::format("{} {} {}", scenario.machine.name(), scenario.machine.nodes(),
                      build_graph(scenario.workload).parameters);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<std::uint64_t>(static_cast<unsigned char>(c))) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

// Unlimited memory has no number in JSON.
ordered_json bytes_json(Bytes bytes) {
  return std::isfinite(bytes.value()) ? ordered_json(bytes.value()) : ordered_json(nullptr);
}
Bytes bytes_from(const ordered_json& json) {
  return Bytes(json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>());
}

ordered_json to_json(const std::vector<Override>& sets, const Trial& trial) {
  ordered_json json = {{"sets", texts_of(sets)},
                       {"iteration_s", trial.iteration_time.value()},
                       {"tokens_per_second", trial.tokens_per_second},
                       {"fits", trial.fits}};
  json["pools"] = ordered_json::array();
  for (const Need& need : trial.needs) {
    json["pools"].push_back({{"name", need.pool},
                             {"kind", need.is_gpu    ? "gpu"
                                      : need.is_host ? "host"
                                                     : "storage"},
                             {"needed_bytes", need.bytes.value()},
                             {"capacity_bytes", bytes_json(need.capacity)}});
  }
  json["paths"] = ordered_json::array();
  for (const Trial::Wear& wear : trial.wear) {
    json["paths"].push_back(
        {{"name", wear.path},
         {"written_per_day_bytes", wear.written_per_day.value()},
         {"life_years", wear.life_years ? ordered_json(*wear.life_years) : ordered_json(nullptr)}});
  }
  return json;
}

Trial trial_from(const ordered_json& json) {
  Trial trial{.iteration_time = Seconds(json.at("iteration_s").get<double>()),
              .tokens_per_second = json.at("tokens_per_second").get<double>(),
              .fits = json.at("fits").get<bool>(),
              .needs = {},
              .wear = {}};
  for (const ordered_json& pool : json.at("pools")) {
    trial.needs.push_back({.pool = pool.at("name").get<std::string>(),
                           .bytes = bytes_from(pool.at("needed_bytes")),
                           .capacity = bytes_from(pool.at("capacity_bytes")),
                           .is_gpu = pool.at("kind") == "gpu",
                           .is_host = pool.at("kind") == "host"});
  }
  for (const ordered_json& path : json.at("paths")) {
    const ordered_json& life = path.at("life_years");
    trial.wear.push_back(
        {.path = path.at("name").get<std::string>(),
         .written_per_day = bytes_from(path.at("written_per_day_bytes")),
         .life_years = life.is_null() ? std::nullopt : std::optional(life.get<double>())});
  }
  return trial;
}

}  // namespace

ResultsLog::ResultsLog(std::string path, const Evaluator& evaluator, Mode mode)
    : path_(std::move(path)) {
  const ordered_json header = {{"schema", schema},
                               {"scenario", evaluator.path()},
                               {"revision", revision()},
                               {"fingerprint", fingerprint_of(evaluator)}};
  const bool exists = std::filesystem::exists(path_);
  if (exists && mode == Mode::fresh) {
    throw InputError({path_, 0, 0}, "",
                     "exists; add --resume to continue it, or name another file");
  }
  if (exists) load(header.dump());
  errno = 0;
  file_.open(path_, std::ios::binary | std::ios::app);
  if (!exists || std::filesystem::file_size(path_) == 0) file_ << header.dump() << std::endl;
  if (!file_)
    throw MachineError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

void ResultsLog::load(const std::string& header) {
  std::ifstream in(path_, std::ios::binary);
  std::uintmax_t whole = 0;
  int number = 0;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    ++number;
    if (number == 1 && ordered_json::parse(line, nullptr, false).value("fingerprint", "") !=
                           ordered_json::parse(header).at("fingerprint")) {
      throw InputError({path_, 1, 0}, "",
                       "holds results of another scenario, profile or version of the program; "
                       "name another file");
    }
    try {
      const ordered_json json = ordered_json::parse(line);
      if (number > 1) known_[json.at("sets").get<std::vector<std::string>>()] = trial_from(json);
    } catch (const nlohmann::json::exception&) {
      throw InputError({path_, number, 0}, "",
                       "is not a result; remove the line, or name another file");
    }
    whole += line.size() + 1;
  }
  in.close();
  // What follows the last newline was being written when the run ended.
  std::filesystem::resize_file(path_, whole);
}

std::optional<Trial> ResultsLog::find(const std::vector<Override>& sets) const {
  const auto at = known_.find(texts_of(sets));
  return at == known_.end() ? std::nullopt : std::optional(at->second);
}

void ResultsLog::append(const std::vector<Override>& sets, const Trial& trial) {
  const std::string line = to_json(sets, trial).dump() + "\n";
  const std::lock_guard hold(guard_);
  errno = 0;
  file_ << line << std::flush;
  if (!file_) {
    throw MachineError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  }
}

}  // namespace tidegate
