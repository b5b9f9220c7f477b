#include "sim/search/results.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "models/base/error.hpp"
#include "sim/run/predict.hpp"
#include "sim/search/wire.hpp"

namespace tidegate {
namespace {

using nlohmann::ordered_json;

constexpr const char* schema = "tidegate.tune_results/1";

void write_value(std::string& text, const yaml::Value& value) {
  text += value.text + "\n";
  for (const yaml::Entry& entry : value.entries) {
    text += entry.key + ":";
    write_value(text, entry.value);
  }
  for (const yaml::Value& item : value.items) write_value(text, item);
}

}  // namespace

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

// Whatever else stands in the file is somebody's: it is left alone.
void ResultsLog::check_header(const std::string& line, bool is_whole,
                              const std::string& header) const {
  const auto wrong = [&](const std::string& text) {
    return InputError({path_, 1, 0}, "", text + "; name another file");
  };
  const ordered_json found = ordered_json::parse(line, nullptr, false);
  const bool is_ours = is_whole
                           ? found.is_object() && found.value("schema", ordered_json()) == schema
                           : header.starts_with(line);
  if (!is_ours) {
    throw wrong(fmt::format("is no file of results: its first line does not say \"schema\": \"{}\"",
                            schema));
  }
  if (is_whole &&
      found.value("fingerprint", ordered_json()) != ordered_json::parse(header).at("fingerprint"))
    throw wrong("holds results of another scenario, profile or version of the program");
}

void ResultsLog::load(const std::string& header) {
  std::ifstream in(path_, std::ios::binary);
  std::string line;
  std::getline(in, line);
  check_header(line, !in.eof(), header);
  std::uintmax_t whole = in.eof() ? 0 : line.size() + 1;
  for (int number = 2; std::getline(in, line) && !in.eof(); ++number) {
    try {
      Result result = decode_result(line);
      known_[std::move(result.sets)] = std::move(result.trial);
    } catch (const std::exception&) {
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
  const std::string line = encode(sets, trial) + "\n";
  const std::lock_guard hold(guard_);
  errno = 0;
  file_ << line << std::flush;
  if (!file_) {
    throw MachineError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  }
}

}  // namespace tidegate
