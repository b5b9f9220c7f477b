#include "validate/native/passes.hpp"

#include <cmath>
#include <vector>

#include "calib/node/estimate.hpp"
#include "models/base/error.hpp"

namespace tidegate {
namespace {

using calib::Block;
using calib::Measurements;
using calib::RowResult;

bool has_value(const Block& block) { return std::isfinite(block.value()); }

void add_all(Measurements& sum, const Measurements& more) {
  ensure(sum.rows.size() == more.rows.size(), "passes have the same rows");
  for (std::size_t r = 0; r < more.rows.size(); ++r) {
    RowResult& row = sum.rows[r];
    for (Block block : more.rows[r].blocks) {
      block.pass += sum.passes;
      row.blocks.push_back(std::move(block));
    }
    row.faults.insert(row.faults.end(), more.rows[r].faults.begin(), more.rows[r].faults.end());
  }
  sum.passes += more.passes;
  sum.accepted += more.accepted;
  sum.rejected += more.rejected;
  sum.seconds += more.seconds;
  sum.is_complete &= more.is_complete;
}

double sum_of_squares(std::span<const double> values, double mean, Spread spread) {
  double squares = 0;
  if (spread == Spread::over_all) {
    for (const double v : values) squares += (v - mean) * (v - mean);
    return squares;
  }
  for (std::size_t i = 1; i < values.size(); ++i) {
    squares += (values[i] - values[i - 1]) * (values[i] - values[i - 1]) / 2;
  }
  return squares;
}

}  // namespace

Measurements joined(std::span<const Measurements> passes) {
  ensure(!passes.empty(), "there is a pass to begin with");
  Measurements sum = passes.front();
  for (const Measurements& more : passes.subspan(1)) add_all(sum, more);
  return sum;
}

Measurements around(std::span<const Measurements> passes, std::size_t before) {
  ensure(before < passes.size(), "the moment comes after a pass");
  Measurements both = joined(passes.first(before + 1));
  for (RowResult& row : both.rows) {
    std::erase_if(row.blocks, [](const Block& b) { return !has_value(b); });
    if (row.blocks.size() > 1) row.blocks.erase(row.blocks.begin(), row.blocks.end() - 1);
  }
  if (before + 1 == passes.size()) return both;
  const Measurements after = joined(passes.subspan(before + 1));
  for (std::size_t r = 0; r < both.rows.size(); ++r) {
    for (const Block& block : after.rows.at(r).blocks) {
      if (!has_value(block)) continue;
      both.rows[r].blocks.push_back(block);
      both.rows[r].blocks.back().pass += both.passes;
      break;
    }
  }
  both.passes += after.passes;
  return both;
}

double deviation(std::span<const double> values, Spread spread) {
  if (values.size() < 2) return 0;
  const auto n = static_cast<double>(values.size());
  double mean = 0;
  for (const double v : values) mean += v / n;
  return mean > 0 ? std::sqrt(sum_of_squares(values, mean, spread) / (n - 1)) / mean : 0;
}

double pooled_deviation(const Measurements& m, calib::Gate gate, Spread spread) {
  double squares = 0, freedom = 0;
  for (const RowResult& row : m.rows) {
    if (row.row.gate != gate || !row.faults.empty()) continue;
    const std::vector<double> values = calib::block_values(row);
    if (values.size() < 2) continue;
    const double n = static_cast<double>(values.size()) - 1;
    squares += std::pow(deviation(values, spread), 2) * n;
    freedom += n;
  }
  return freedom > 0 ? std::sqrt(squares / freedom) : 0;
}

}  // namespace tidegate
