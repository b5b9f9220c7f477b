#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/report/table.hpp"
#include "validate/field.hpp"

/// Public memory reports as tables and lists, for text and for pages.
namespace tidegate {

using FieldRows = std::function<bool(const FieldRow&)>;
Table field_rows_table(
    const Field& field, const FieldRows& which = [](const FieldRow&) { return true; });
Table field_verdicts_table(const Field& field);
Table field_summary_table(const Field& field);
/// What is known of rows that miss or differ.
std::vector<std::string> field_remarks(const Field& field);
/// Reports that are elsewhere, or cannot be simulated, with the reason.
std::vector<std::string> field_left_out(const Field& field);
/// Every report with its source and what had to be assumed.
std::vector<std::string> field_sources(const Field& field);
/// How many answers agree and gates hold, and what is compared with what.
std::string field_count_text(const Field& field);

}  // namespace tidegate
