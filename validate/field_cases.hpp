#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/yaml.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/field.hpp"

/// The files of field reports, read (docs/field_json.md).
namespace tidegate {

struct FieldRun {
  std::string name, note;
  Where where;
  std::vector<Override> overrides;
  std::vector<std::pair<std::string, Observed>> observed;  ///< by quantity, in the table's order
  std::string verdict;                                     ///< fits, gpu, host; empty: not said
  bool is_estimate = false;
};

struct FieldReport {
  FieldCase facts;
  bool is_complete = false;
  std::string file;
  yaml::Value scenario;
  std::vector<FieldRun> runs;  ///< empty when nothing is simulated here
};

/// Quantities of `observed`, in bytes.
std::vector<std::string_view> field_quantities();

/// Every report of the index, in its order. Throws InputError with all problems of a file.
std::vector<FieldReport> read_field(const std::string& index);

}  // namespace tidegate
