#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "calib/measure/protocol.hpp"

/// Measurements of one machine taken again and again, in the order of time, and what they say of a
/// moment between two of them.
namespace tidegate {

/// All passes as one: a row has the blocks of all.
calib::Measurements joined(std::span<const calib::Measurements> passes);

/// What held between pass `before` and the one after it: of every row the last block with a value
/// up to the one and the first from the other on, so that their median is the mean of the two. A
/// row that one side lacks (its samples were beside other work) has the other's alone.
calib::Measurements around(std::span<const calib::Measurements> passes, std::size_t before);

/// How far the values of a row are apart.
///
/// over_all      their standard deviation: noise, and the drift from the first to the last
/// of_neighbours  sqrt(sum (x[i+1] - x[i])² / (2 (n-1))), the same for values without drift, and
///                without most of it for others (von Neumann, Kent, Bellinson and Hart 1941, "The
///                mean square successive difference")
enum class Spread : std::uint8_t { over_all, of_neighbours };

/// Relative to the mean of the values, which are in the order of time; 0 of fewer than two.
double deviation(std::span<const double> values, Spread spread);

/// The same of all rows of `m` with this gate together, each weighted with its values less one.
double pooled_deviation(const calib::Measurements& m, calib::Gate gate, Spread spread);

}  // namespace tidegate
