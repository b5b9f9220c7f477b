#pragma once

#include <cstdint>
#include <string>

#include "sim/report/table.hpp"
#include "validate/published.hpp"

/// Published figures as tables, for text and for pages.
namespace tidegate {

/// Which rows: those that set a value of the profile are in sample.
enum class Sample : std::uint8_t { all, in, out };

/// With its unit.
std::string value_text(const PublishedRow& row, double value);
/// Rows of one set.
Table rows_table(const Published& published, std::size_t set, Sample sample = Sample::all);
Table summary_table(const Published& published);
/// A line per run: what is predicted, and the largest error of it.
Table models_table(const Published& published);
Table recalled_table(const Published& published);
/// Iteration times and their intervals; empty when none were asked for.
Table coverage_table(const Published& published);
/// What intervals are made of, and how many measured times lie within theirs.
std::string coverage_note(const Published& published);
std::string gates_text(const Published& published);
/// Every gated row, model value and band that misses its gate.
Table misses_table(const Published& published);

}  // namespace tidegate
