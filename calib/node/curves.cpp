#include "calib/node/curves.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "calib/fit/fit.hpp"
#include "calib/fit/statistics.hpp"

namespace tidegate::calib {

double bytes_of(const Row& row) { return coordinate(row, "bytes"); }

double product_flops(const Row& row) {
  return 2 * coordinate(row, "m") * coordinate(row, "n") * coordinate(row, "k");
}

std::optional<Estimate> fastest(const Rows& rows) {
  std::optional<Estimate> best;
  for (const RowResult* row : rows) {
    const Estimate e = estimate(*row);
    if (!best || e.value > best->value) best = e;
  }
  return best;
}

Entry curve(std::string key, const Rows& rows, const Axis& axis, double whole, std::string source) {
  std::map<double, std::vector<double>> by_size;
  for (const RowResult* row : rows) by_size[axis.of(row->row)].push_back(estimate(*row).value);
  std::string text;
  for (const auto& [size, values] : by_size) {
    text += fmt::format("{}[{:.6g} {}, {:.4f}]", text.empty() ? "" : ", ", size / axis.scale,
                        axis.unit, std::min(1.0, median(values) / whole));
  }
  return {.key = std::move(key),
          .text = "[" + text + "]",
          .source = std::move(source),
          .kind = Entry::Kind::points};
}

void add_copy_half_size(SectionWriter& out, const Rows& rows, const std::string& quantity) {
  const std::string key = "copy_half_size";
  if (rows.size() < 2) return out.assumed(key, "0 B", "sizes were not measured");
  const Fit f = fit(Form::half_size, points(rows, {"bytes"}));
  if (!f.is_usable)
    return out.assumed(key, "0 B", "copies show no rise with their size that a fit could tell");
  out.told(
      key, size_text(f.parameter("half")),
      fmt::format("measured: {} over sizes, fitted, off by {:.1f} %", quantity, 100 * f.residual));
}

}  // namespace tidegate::calib
