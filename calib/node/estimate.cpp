#include "calib/node/estimate.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "models/base/units.hpp"

namespace tidegate::calib {
namespace {

bool is_size(const std::string& name) {
  return name == "block" || name == "bytes" || name == "dirty" || name == "size";
}

std::string where_text(const Row& row) {
  std::string text;
  for (const auto& [name, value] : row.at) {
    if (!text.empty()) text += ", ";
    text += name + " " + (is_size(name) ? to_text(Bytes(value)) : fmt::format("{:g}", value));
  }
  return text;
}

double relative_deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double v : values) mean += v / n;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return mean > 0 ? std::sqrt(squares / (n - 1)) / mean : 0;
}

}  // namespace

std::vector<double> block_values(const RowResult& row) {
  std::vector<double> values;
  for (const Block& block : row.blocks) {
    const double value = block.value();
    if (std::isfinite(value) && value > 0) values.push_back(value);
  }
  return values;
}

std::vector<const RowResult*> rows_of(const Measurements& measurements,
                                      const std::string& quantity) {
  std::vector<const RowResult*> rows;
  for (const RowResult& row : measurements.rows) {
    if (row.row.quantity == quantity && row.faults.empty() && !block_values(row).empty()) {
      rows.push_back(&row);
    }
  }
  return rows;
}

Estimate estimate(const RowResult& row) {
  const std::vector<double> values = block_values(row);
  ensure(!values.empty(), "a row without values has no estimate");
  return {median(values), relative_deviation(values), values.size(), where_text(row.row)};
}

double coordinate(const Row& row, const std::string& name) {
  for (const auto& [key, value] : row.at) {
    if (key == name) return value;
  }
  return -1;
}

std::vector<const RowResult*> with(std::vector<const RowResult*> rows, const std::string& name,
                                   double value) {
  std::erase_if(rows, [&](const RowResult* row) {
    const double own = coordinate(row->row, name);
    return own >= 0 && own != value;
  });
  return rows;
}

std::optional<Estimate> plateau(const std::vector<const RowResult*>& rows,
                                const std::function<double(const Row&)>& size) {
  double most = 0;
  for (const RowResult* row : rows) most = std::max(most, size(row->row));
  std::vector<double> values;
  std::size_t used = 0;
  for (const RowResult* row : rows) {
    if (size(row->row) < most / 4) continue;
    const std::vector<double> own = block_values(*row);
    values.insert(values.end(), own.begin(), own.end());
    ++used;
  }
  if (values.empty()) return std::nullopt;
  return Estimate{median(values), relative_deviation(values), values.size(),
                  used == 1 ? "one setting" : fmt::format("{} settings at the plateau", used)};
}

std::optional<Estimate> largest(const std::vector<const RowResult*>& rows,
                                const std::function<double(const Row&)>& size) {
  const auto at =
      std::ranges::max_element(rows, {}, [&size](const RowResult* row) { return size(row->row); });
  if (at == rows.end()) return std::nullopt;
  return estimate(**at);
}

std::vector<Point> points(const std::vector<const RowResult*>& rows,
                          const std::vector<std::string>& coordinates,
                          const std::function<double(const Row&, double)>& value) {
  std::vector<Point> all;
  for (const RowResult* row : rows) {
    Point point;
    for (const std::string& name : coordinates) point.x.push_back(coordinate(row->row, name));
    for (const Block& block : row->blocks) {
      const double v = block.value();
      if (!std::isfinite(v) || v <= 0) continue;
      point.y = value(row->row, v);
      point.pass = block.pass;
      all.push_back(point);
    }
  }
  return all;
}

std::vector<Point> points(const std::vector<const RowResult*>& rows,
                          const std::vector<std::string>& coordinates) {
  return points(rows, coordinates, [](const Row&, double value) { return value; });
}

double drift(const Measurements& measurements, Gate gate) {
  double squares = 0, freedom = 0;
  for (const RowResult& row : measurements.rows) {
    if (row.row.gate != gate || !row.faults.empty()) continue;
    const std::vector<double> values = block_values(row);
    if (values.size() < 2) continue;
    const double spread = relative_deviation(values), n = static_cast<double>(values.size()) - 1;
    squares += spread * spread * n;
    freedom += n;
  }
  return freedom > 0 ? std::sqrt(squares / freedom) : 0;
}

}  // namespace tidegate::calib
