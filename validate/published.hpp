#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Published figures beside predictions, in three kinds, each from files of validate/published/
/// (docs/published_json.md):
///
///   runs     what was measured, beside simulate(); with the scenario of each run, and which
///            quantities set a value of the profile (in sample)
///   models   what another cost model says, beside the same equations here (ssdtrain_cost.hpp)
///   bands    how a system behaves: a ratio of two simulated runs, or of one and a given value, and
///            where it should lie
///
/// relative_error = predicted / published - 1.
///
/// Gates, on |relative_error|: runs in sample, backward and update 2 %; out of sample, phases above
/// one second 10 %, iterations 8 %, memory peaks 10 %, speed-ups 10 %. Models 1 %, values given
/// with every digit 0.001 %. A band is a gate itself where it says so. Other rows are shown and not
/// gated; what is recalled, and was not read again, never is.
namespace tidegate {

struct PublishedOptions {
  std::string file;        ///< of any kind (docs/published_json.md); empty: those that ship
  std::string only;        ///< cases, model runs and bands whose name contains this; empty: all
  bool ablation = false;   ///< also run the switch-by-switch table
  std::int32_t draws = 0;  ///< machines drawn for the interval of each iteration time; 0: none
};

/// Runs of one source, predicted with one profile.
struct RunSet {
  std::string name;  ///< "MLP-Offload": short, for summaries
  std::string title, source, profile, note;
};

struct PublishedRow {
  std::size_t set = 0;                             ///< of Published::sets
  std::string case_name, variant, quantity, unit;  ///< unit: s, B or 1
  double predicted = 0, measured = 0;
  bool in_sample = false;
  std::optional<double> gate;  ///< largest allowed |relative_error|
  /// Of an iteration, when intervals were asked for: of the logarithm of the time, by the profile's
  /// uncertainties (sim/run/interval.hpp), and by what the models miss in the other cases.
  std::optional<double> profile_deviation;
  double model_deviation = 0;

  double relative_error() const { return predicted / measured - 1; }
  bool is_missed() const;
  /// Nine in ten measured times should lie within.
  std::optional<std::pair<double, double>> range() const;
  bool is_inside() const;
};

/// A value that another model gives, or that is recalled of a paper.
struct ModelRow {
  std::string run, quantity, unit;  ///< unit: s, B, B/s, years or 1
  double predicted = 0, published = 0;
  bool is_recalled = false;
  std::optional<double> gate;

  double relative_error() const { return predicted / published - 1; }
  bool is_missed() const;
};

/// A claim about behaviour: `value` should lie within [low, high].
struct Band {
  std::string group, name;  ///< "step time", "step time, BERT H8192 L4"
  std::string claim, source;
  double low = 0, high = 0, value = 0;
  bool is_gated = false;
  bool is_recalled = false;
  bool in_sample = false;  ///< a value of the profile was set knowing this band

  bool holds() const { return low <= value && value <= high; }
  bool is_missed() const { return is_gated && !holds(); }
};

struct PublishedSummary {
  std::string what;  ///< "iterations, out of sample"
  std::int32_t rows = 0;
  double mean = 0, worst = 0;  ///< of |relative_error|
  std::string worst_row;
};

/// How many measured iteration times lie within their interval; nine in ten would be right.
struct PublishedCoverage {
  std::string what;
  std::int32_t rows = 0, inside = 0;
};

struct Published {
  std::vector<RunSet> sets;  ///< of the runs
  std::vector<PublishedRow> rows;
  std::vector<std::string> notes;         ///< "40B multi-path: README only; …"
  std::string model_title, model_source;  ///< of the models
  std::vector<ModelRow> model_rows;
  std::string band_title;
  std::vector<Band> bands;
  std::vector<PublishedSummary> summary;    ///< of runs and models
  std::vector<PublishedCoverage> coverage;  ///< empty when no intervals were asked for
  /// Of all iterations out of sample (validate/discrepancy.hpp), when intervals were asked for.
  std::optional<double> model_deviation;
  std::int32_t gated = 0, missed = 0;  ///< of all kinds
  std::string ablation;                ///< table as text, empty when not asked for
};

/// Predicts every case, model run and band. Throws InputError on a wrong file, with places, or on a
/// name that nothing has.
Published run_published(const PublishedOptions& options);

std::string to_text(const Published& published);
/// Iterations and speed-ups, a line per run; the summary, the bands and how many gates hold.
std::string to_brief_text(const Published& published);
/// {schema: "tidegate.published/1", rows: […], …} as in docs/published_json.md.
std::string to_json(const Published& published);

}  // namespace tidegate
