#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calib/fit/statistics.hpp"

/// Device models fitted to measured points.
///
/// Loss: squared log error, log(model/measured), over block values, which grows linearly beyond
/// 1.345 standard deviations (Huber 1964); blocks that lie further than five standard deviations
/// from the median of their setting, as told by its other passes, do not count and are reported
/// (`outlying`). A setting where all passes agree on what the form cannot follow is never put aside
/// so. Positive parameters are fitted as their logarithms by Levenberg-Marquardt (Eigen).
///
/// Errors are also told where the fit has not looked: every setting left out once, every pass left
/// out once. A fit whose held-out error exceeds twice the measurement's own interval is not used:
/// the measured table is.
///
/// Uncertainty: parametric bootstrap, seeded, with two kinds of noise, that of blocks within a pass
/// and that of passes; deviations of the draws to either side, times Student's t with the freedom
/// that estimated both (Satterthwaite 1946). What all blocks of a pass share is known only as well
/// as a few passes tell: a rate fitted to three passes has an interval of 4.3 standard errors. How
/// often the intervals hold the truth is measured in tests/calib/fit and told in
/// docs/calibration.md.
namespace tidegate::calib {

/// One block value at one setting. x: as many coordinates as the form has.
struct Point {
  std::vector<double> x;
  double y = 0;  ///< above zero (capacity_region: zero or more, and not both r and w zero)
  std::int32_t pass = 0;
  /// Points of one setting have one number where x is itself measured, as that of capacity_region;
  /// -1: points with the same x are of one setting.
  std::int32_t setting = -1;
};

struct Parameter {
  const char* name;
  double value = 0;
  /// 95 %. From zero to infinity where there are no more points than parameters, and where the
  /// points do not depend on the parameter.
  Interval interval;
};

/// Where an error cannot be told (one setting, one pass), it is infinite.
struct Fit {
  std::string form;
  std::vector<Parameter> parameters;
  double residual = 0;           ///< standard deviation of log(model/measured), of all blocks
  double outlying = 0;           ///< part of the blocks that did not count
  double held_out_setting = 0;   ///< median |log error| of settings left out
  double held_out_pass = 0;      ///< of passes left out
  double measurement = 0;        ///< median relative half-width of the settings' own intervals
  std::vector<Interval> domain;  ///< of each coordinate
  /// Held-out errors at most twice `measurement` (or 1 %). Needs two passes, and more settings than
  /// parameters; a constant needs one setting.
  bool is_usable = false;
  double at(std::span<const double> x) const;
  std::function<double(std::span<const double> parameters, std::span<const double> x)> model;
  double parameter(const std::string& name) const;  ///< value; ensure()s that it exists
};

// clang-format off
/// The forms. Units: bytes, seconds, bytes per second, parameters; x in the order given; exponents p
/// lie between 0.5 and 20, where 20 is as good as a sharp bend.
///   constant           y = c
///   latency_rate       t(n) = t0 + n / rate                                        x: n
///   half_size          r(n) = rate · n / (n + half)                                x: n
///   queue_saturating   X(b, q) = q·b / ((L0 + b/B_ch)^p + (q·b/B_max)^p)^(1/p)     x: block, depth
///   thread_saturating  B(n) = n·B_1 / (1 + (n·B_1/B_max)^p)^(1/p)                  x: threads
///   adam               t(N, n) = t0 + max(N·c/n, N·bytes/B)                        x: parameters, threads
///   capacity_region    r such that (r/R)^p + (w/W)^p = 1; errors along the ray     x: w
///                      through the point, since r and w are both measured
///   cache_knee         ratio of re-read to first-read rate of a region of n bytes  x: n
///                      of which the part h = min(1, (size/n)^p) is in the cache:
///                      1 / (h/ratio + 1 - h). p = 1: random replacement; large: a
///                      cliff, as of least-recently-used replacement under scans
///   leaky_bucket       rate when n bytes were written: fast up to credit, slow     x: n
///                      beyond; the credit lies between two measured n
///   gemm               t = t0 + max(2mnk/(P·e), bytes/B),                          x: m, n, k
///                      e = k/(k + k0) · m/up(m) · n/up(n), up() to the next
///                      multiple of tile; bytes of A, B and C once
// clang-format on
enum class Form {
  constant,
  latency_rate,
  half_size,
  queue_saturating,
  thread_saturating,
  adam,
  capacity_region,
  cache_knee,
  leaky_bucket,
  gemm
};
const char* name_of(Form form);
std::optional<Form> form_named(std::string_view name);

struct FitOptions {
  std::int32_t draws = 200;  ///< of the bootstrap
  std::uint64_t seed = 7;
  double adam_bytes = 28;   ///< bytes of memory traffic per parameter, of Form::adam
  double gemm_element = 4;  ///< bytes of a number, of Form::gemm
};
/// Throws std::logic_error when there are fewer points than parameters, or a point is not one of
/// the form (wrong number of coordinates, not positive).
Fit fit(Form form, std::span<const Point> points, const FitOptions& options = {});

/// What a form gives at `x` with these parameters.
double value_of(Form form, std::span<const double> parameters, std::span<const double> x,
                const FitOptions& options = {});

/// Relative drift of the machine over the run, for the error floor: between-pass spread of block
/// values, pooled over settings: 1.4826 · median |log(y1/y2)| / sqrt(2) over all pairs of blocks of
/// one setting. 0 where no setting has two blocks.
double between_pass_spread(std::span<const Point> points);

}  // namespace tidegate::calib
