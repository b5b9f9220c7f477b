#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/units.hpp"
#include "models/base/yaml.hpp"

/// The section `calibration` of a profile (docs/profiles.md): how its values were measured. A
/// prediction takes none of it; people, `calib show` and `calib diff` do.
namespace tidegate {

struct Calibration {
  struct Gate {
    std::int64_t accepted = 0, rejected = 0;  ///< samples
    double foreign_cores = 0;
    BytesPerSecond foreign_io;
  };
  struct Raw {
    std::string file, fnv1a;
    std::int64_t blocks = 0;
  };
  /// Relative difference that two runs of the same thing show.
  struct ErrorFloor {
    double compute_bound = 0, io_bound = 0, overlapped = 0;
  };
  /// What a block of a kind of rows deviates by as a rule, and how many degrees of freedom that
  /// adds to a value's own; kinds: compute, storage, gpu.
  struct Noise {
    std::string kind;
    double spread = 0, freedom = 0;
  };
  struct Canary {
    std::string name;
    std::int64_t samples = 0;
    double spread = 0, drift = 0;  ///< relative
  };
  enum class Verdict : std::uint8_t { ok, suspected, not_told };
  struct Check {
    std::string name;
    Verdict verdict = Verdict::not_told;
    std::string evidence;
  };
  struct Parameter {
    std::string name;
    double value = 0, low = 0, high = 0;  ///< 95 %
  };
  /// Errors are relative, and infinite where they could not be told.
  struct Fit {
    std::string quantity, form;
    std::vector<std::pair<std::string, double>> of;  ///< of the rows with these coordinates only
    std::vector<Parameter> parameters;
    double residual = 0, held_out_setting = 0, held_out_pass = 0, measurement = 0;
    bool is_used = false;
    std::vector<std::pair<double, double>> domain;  ///< of each coordinate
  };
  struct Table {
    std::string quantity, unit;
    std::vector<std::string> coordinates;
    /// Coordinates, value, low, high, blocks; a bound that could not be told is infinite.
    std::vector<std::vector<double>> rows;
  };
  /// Least, median and most of one row over the nodes of a cluster.
  struct Spread {
    std::string row;
    double least = 0, middle = 0, most = 0;
  };
  using Texts = std::vector<std::pair<std::string, std::string>>;

  std::string tool, created, command;
  bool is_complete = true;
  double seconds = 0;
  std::int64_t seed = 0, passes = 0;
  Texts host;  ///< facts, by their keys
  std::optional<Gate> gate;
  std::optional<Raw> raw;
  std::optional<ErrorFloor> error_floor;
  std::vector<Noise> noise;
  std::vector<Canary> canaries;
  std::vector<Check> checks;
  std::vector<Fit> fits;
  std::vector<Table> tables;
  Texts not_measured;  ///< name, reason
  std::int64_t nodes = 1;
  Texts slow_nodes;  ///< name, evidence
  std::vector<Spread> spreads;
};
const char* name_of(Calibration::Verdict verdict);

/// Strict: unknown keys are problems of the document. Only tool and created are required.
Calibration read_calibration(const yaml::Node& node);

/// That of a profile; none when it has no such section. Throws InputError with all problems of the
/// section; what else is wrong with the profile is load_machine's business.
std::optional<Calibration> load_calibration(const std::string& path);

}  // namespace tidegate
