#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calib/node/sections.hpp"

/// What the sections of the CPU and of GPUs make of rows over sizes. For calib/node alone.
namespace tidegate::calib {

using Rows = std::vector<const RowResult*>;

double bytes_of(const Row& row);
/// Of a product: 2·m·n·k.
double product_flops(const Row& row);

std::optional<Estimate> fastest(const Rows& rows);

/// What a row's size is, and how it is written.
struct Axis {
  double (*of)(const Row&) = bytes_of;
  const char* unit = "";
  double scale = 1;
};
inline constexpr Axis in_mflop(double (*of)(const Row&)) { return {of, "MFLOP", 1e6}; }

/// Parts of `whole`, at most all of it, over sizes; of rows of one size the median.
Entry curve(std::string key, const Rows& rows, const Axis& axis, double whole, std::string source);

/// The key copy_half_size: the size of a copy that reaches half of the rate of large ones, from the
/// rows of `quantity`; 0, as an assumption, where their sizes do not tell it.
void add_copy_half_size(SectionWriter& out, const Rows& rows, const std::string& quantity);

}  // namespace tidegate::calib
