#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calib/fit/fit.hpp"
#include "calib/measure/protocol.hpp"

/// Numbers out of measurements: one value with its spread per row, and points for fits.
namespace tidegate::calib {

struct Estimate {
  double value = 0;   ///< median of the block values
  double spread = 0;  ///< relative standard deviation of block values: what another hour may bring
  std::size_t blocks = 0;
  std::string where;  ///< "block 1 MiB, depth 16"
};

/// Rows of a quantity that may be used: without faults, with at least one block that counts.
std::vector<const RowResult*> rows_of(const Measurements& measurements,
                                      const std::string& quantity);
/// Values of the blocks that have any, in the order of passes.
std::vector<double> block_values(const RowResult& row);
/// Throws std::logic_error for a row without values.
Estimate estimate(const RowResult& row);
/// -1 where the row has no such coordinate.
double coordinate(const Row& row, const std::string& name);

/// Those of the rows that have the coordinate `name` at `value`, or have no such coordinate.
std::vector<const RowResult*> with(std::vector<const RowResult*> rows, const std::string& name,
                                   double value);

/// The rows whose `size` is at least a quarter of the largest, taken together: a plateau is told by
/// all its rows, because the best of noisy ones is too good.
std::optional<Estimate> plateau(const std::vector<const RowResult*>& rows,
                                const std::function<double(const Row&)>& size);
/// The row with the largest `size`.
std::optional<Estimate> largest(const std::vector<const RowResult*>& rows,
                                const std::function<double(const Row&)>& size);

/// A point per block. x: the named coordinates; y by `value`, from the row and its block value.
std::vector<Point> points(const std::vector<const RowResult*>& rows,
                          const std::vector<std::string>& coordinates,
                          const std::function<double(const Row&, double)>& value);
std::vector<Point> points(const std::vector<const RowResult*>& rows,
                          const std::vector<std::string>& coordinates);

/// Relative spread between the passes of equal rows, pooled over the rows whose gate is `gate`.
double drift(const Measurements& measurements, Gate gate);

}  // namespace tidegate::calib
