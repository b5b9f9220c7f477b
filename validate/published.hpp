#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Published runs: what was measured, what is predicted, and how far apart they are.
///
/// validate/published/*.yaml hold the measured values with their source, the scenario of each run,
/// and which quantities set a value of the profile (in sample). relative_error = predicted /
/// measured - 1.
///
/// Gates, on |relative_error|: in-sample backward and update 2 %; out of sample, phases above one
/// second 10 %, iterations 8 %, memory peaks 10 %, speed-ups 10 %. Other rows are shown and not
/// gated.
namespace tidegate {

struct PublishedOptions {
  std::string file;       ///< of cases (docs/published_json.md); empty: the one that ships
  std::string only;       ///< cases whose name contains this; empty: all
  bool ablation = false;  ///< also run the switch-by-switch table
};

struct PublishedRow {
  std::string case_name, variant, quantity, unit;  ///< unit: s, B or 1
  double predicted = 0, measured = 0;
  bool in_sample = false;
  std::optional<double> gate;  ///< largest allowed |relative_error|

  double relative_error() const { return predicted / measured - 1; }
  bool is_missed() const;
};

struct PublishedSummary {
  std::string what;  ///< "iterations, out of sample"
  std::int32_t rows = 0;
  double mean = 0, worst = 0;  ///< of |relative_error|
  std::string worst_row;
};

struct Published {
  std::string title, source, profile;
  std::vector<PublishedRow> rows;
  std::vector<std::string> notes;  ///< "40B multi-path: README only; …"
  std::vector<PublishedSummary> summary;
  std::int32_t gated = 0, missed = 0;
  std::string ablation;  ///< table as text, empty when not asked for
};

/// Predicts every case. Throws InputError on a wrong case file, with places, or on an unknown case
/// name.
Published run_published(const PublishedOptions& options);

std::string to_text(const Published& published);
/// Iterations and speed-ups, a line per run; the summary and how many gates hold.
std::string to_brief_text(const Published& published);
/// {schema: "tidegate.published/1", rows: […], summary: […]} as in docs/published_json.md.
std::string to_json(const Published& published);

}  // namespace tidegate
