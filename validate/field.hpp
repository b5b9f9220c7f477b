#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Memory as people report it in public, beside what is predicted.
///
/// validate/published/field/index.yaml lists every report once: predicted from a file of its own
/// name, covered by the table of published runs, or not simulated, with the reason. No value of any
/// profile is set from a quantity that is compared: every row is out of sample.
///
/// A row whose inputs are complete and whose value was observed is gated at 15 %; so is, by yes or
/// no, whether the run fits. Rows with assumed inputs and rows that are somebody's estimate are
/// shown and not gated.
namespace tidegate {

struct FieldOptions {
  std::string index;  ///< empty: the one that ships
  std::string only;   ///< cases whose name contains this; empty: all
};

/// What was seen: one value, or a range that it lies in.
struct Observed {
  double low = 0, high = 0;
};

struct FieldRow {
  std::string case_name, run, quantity;  ///< quantity: docs/field_json.md
  std::string measure;   ///< how the prediction is made where it is not the quantity itself
  double predicted = 0;  ///< B
  Observed observed;     ///< B
  bool is_complete = false, is_estimate = false;
  std::optional<double> gate;
  std::string note;  ///< cause of a difference, where known

  /// predicted / observed - 1 against the nearer end of a range; 0 within it.
  double relative_error() const;
  bool is_missed() const;
};

/// Whether a run fits, and if not, which memory is full: "fits", "gpu", "host".
struct FieldVerdict {
  std::string case_name, run;
  std::string predicted;  ///< "gpu and host" where both are
  std::string observed;
  bool is_gated = false;
  std::string note;

  bool agrees() const;
};

struct FieldCase {
  std::string name, title, source;
  std::string elsewhere;                   ///< where its rows are instead: "validate published"
  std::vector<std::string> assumed;        ///< inputs that the report does not give
  std::vector<std::string> not_simulated;  ///< whole, or "run: reason"
};

struct FieldSummary {
  std::string what;
  std::int32_t rows = 0;
  double mean = 0, worst = 0;  ///< of |relative_error|
  std::string worst_row;
};

struct Field {
  std::vector<FieldCase> cases;  ///< every one of the index, in its order
  std::vector<FieldRow> rows;
  std::vector<FieldVerdict> verdicts;
  std::vector<FieldSummary> summary;
  std::int32_t gated = 0, missed = 0;  ///< rows and verdicts together
};

/// Throws InputError on a wrong index or case file, with places, or on an unknown case name.
Field run_field(const FieldOptions& options);

std::string to_text(const Field& field);
/// {schema: "tidegate.field/1", …} as in docs/field_json.md.
std::string to_json(const Field& field);

}  // namespace tidegate
