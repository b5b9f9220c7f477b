#pragma once

#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/evaluate.hpp"

namespace tidegate {

/// Tells apart what results depend on: scenario, profile, and version of the program.
std::string fingerprint_of(const Evaluator& evaluator);

/// A file of finished simulations, a line of JSON each, appended and flushed as soon as it is
/// there: a run that is killed loses none of them. The first line says of which scenario, profile
/// and revision they are. A last line that was cut off is dropped.
class ResultsLog {
 public:
  enum class Mode { fresh, resume };
  /// Throws InputError when the file exists and is not to be resumed, is no such file, or is of
  /// other inputs;
  /// MachineError when it cannot be written.
  ResultsLog(std::string path, const Evaluator& evaluator, Mode mode);

  std::optional<Trial> find(const std::vector<Override>& sets) const;
  /// May be called from several threads.
  void append(const std::vector<Override>& sets, const Trial& trial);

 private:
  void check_header(const std::string& line, bool is_whole, const std::string& header) const;
  void load(const std::string& header);

  std::string path_;
  std::map<std::vector<std::string>, Trial> known_;
  std::ofstream file_;
  std::mutex guard_;
};

}  // namespace tidegate
