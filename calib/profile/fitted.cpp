#include "calib/profile/fitted.hpp"

#include <algorithm>

namespace tidegate::calib {
namespace {

using Table = Calibration::Table;

bool is_same(double a, double b) { return std::abs(a - b) <= 1e-4 * std::abs(b); }

// Rows of the table that the fit is of; a row that has no such coordinate says -1, and counts.
std::vector<std::vector<double>> rows_of(const Calibration::Fit& fit, const Table& table) {
  std::vector<std::vector<double>> rows = table.rows;
  for (const auto& [name, value] : fit.of) {
    const auto column = static_cast<std::size_t>(std::ranges::find(table.coordinates, name) -
                                                 table.coordinates.begin());
    if (column == table.coordinates.size()) continue;
    std::erase_if(rows, [column, wanted = value](const auto& row) {
      return row[column] >= 0 && !is_same(row[column], wanted);
    });
  }
  return rows;
}

// Columns of the table that are the coordinates of the fit: the first with each of its ranges.
std::vector<std::size_t> columns_of(const Calibration::Fit& fit, const Table& table,
                                    const std::vector<std::vector<double>>& rows) {
  std::vector<std::size_t> columns;
  for (const auto& [least, most] : fit.domain) {
    for (std::size_t c = 0; c < table.coordinates.size(); ++c) {
      const auto [low, high] = std::ranges::minmax_element(
          rows, {}, [c](const std::vector<double>& row) { return row[c]; });
      const bool is_taken = std::ranges::find(columns, c) != columns.end();
      if (is_taken || !is_same((*low)[c], least) || !is_same((*high)[c], most)) continue;
      columns.push_back(c);
      break;
    }
  }
  if (columns.size() != fit.domain.size()) columns.clear();
  return columns;
}

const Table* table_of(const Calibration::Fit& fit, const Calibration& c) {
  const auto table = std::ranges::find(c.tables, fit.quantity, &Table::quantity);
  return table == c.tables.end() || table->rows.empty() ? nullptr : &*table;
}

}  // namespace

std::optional<double> model_at(const Calibration::Fit& fit, std::span<const double> x) {
  const auto form = form_named(fit.form);
  if (!form) return std::nullopt;
  std::vector<double> parameters;
  for (const auto& p : fit.parameters) parameters.push_back(p.value);
  return value_of(*form, parameters, x);
}

std::vector<FittedSetting> settings_of(const Calibration::Fit& fit, const Calibration& c) {
  const Table* table = table_of(fit, c);
  if (table == nullptr) return {};
  const auto rows = rows_of(fit, *table);
  if (rows.empty()) return {};
  const std::vector<std::size_t> columns = columns_of(fit, *table, rows);
  if (columns.empty()) return {};
  std::vector<FittedSetting> settings;
  const std::size_t value = table->coordinates.size();
  for (const auto& row : rows) {
    FittedSetting s{.measured = row[value], .low = row[value + 1], .high = row[value + 2]};
    for (const std::size_t column : columns) s.x.push_back(row[column]);
    const auto model = model_at(fit, s.x);
    if (!model) return {};
    s.model = *model;
    settings.push_back(std::move(s));
  }
  return settings;
}

std::vector<std::string> coordinates_of(const Calibration::Fit& fit, const Calibration& c) {
  const Table* table = table_of(fit, c);
  std::vector<std::string> names;
  if (table == nullptr) return names;
  const auto rows = rows_of(fit, *table);
  if (rows.empty()) return names;
  for (const std::size_t column : columns_of(fit, *table, rows)) {
    names.push_back(table->coordinates[column]);
  }
  return names;
}

}  // namespace tidegate::calib
