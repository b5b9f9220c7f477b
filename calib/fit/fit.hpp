#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "calib/fit/statistics.hpp"

/// Device models fitted to measured points.
///
/// Loss: squared log error, log(model/measured), over block values; positive parameters are fitted
/// as their logarithms by Levenberg-Marquardt (Eigen). Errors are also told where the fit has not
/// looked: every setting left out once, every pass left out once. Uncertainty: bootstrap over
/// passes and settings, seeded. A fit whose held-out error exceeds twice the measurement's own
/// interval is not used: the measured table is.
namespace tidegate::calib {

/// One block value at one setting. x: as many coordinates as the form has.
struct Point {
  std::vector<double> x;
  double y = 0;
  std::int32_t pass = 0;
};

struct Parameter {
  const char* name;
  double value = 0;
  Interval interval;  ///< 95 %
};

struct Fit {
  std::string form;
  std::vector<Parameter> parameters;
  double residual = 0;           ///< standard deviation of log(model/measured)
  double held_out_setting = 0;   ///< median |log error| of settings left out
  double held_out_pass = 0;      ///< of passes left out
  double measurement = 0;        ///< median relative half-width of the settings' own intervals
  std::vector<Interval> domain;  ///< of each coordinate
  bool is_usable = false;        ///< held-out errors at most twice `measurement` (or 1 %)
  double at(std::span<const double> x) const;
  std::function<double(std::span<const double> parameters, std::span<const double> x)> model;
  double parameter(const std::string& name) const;  ///< value; ensure()s that it exists
};

/// The forms. Units: bytes, seconds, bytes per second, parameters; x in the order given.
///   constant              y = c
///   latency_rate          t(n) = t0 + n / rate                        x: n
///   half_size             r(n) = rate · n / (n + half)                x: n
///   queue_saturating      X(b, q) = q·b / ((L0 + b/Bch)^p + (q·b/Bmax)^p)^(1/p)    x: block, depth
///   thread_saturating     B(n) = n·B1 / (1 + (n·B1/Bmax)^p)^(1/p)    x: threads
///   adam                  t(N, n) = t0 + max(N·c/n, N·bytes/B)        x: parameters, threads
///   capacity_region       r such that (r/R)^p + (w/W)^p = 1           x: w
///   cache_knee            re-read ratio over region size: fast below the cache's size, 1 above  x:
///   bytes leaky_bucket          rate over bytes written: fast until credit, slow afterwards x:
///   bytes gemm                  t = t0 + max(2mnk/(P·e), bytes/B), e = k/(k + k0) · tile
///   quantisation x: m, n, k
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

struct FitOptions {
  std::int32_t draws = 200;  ///< of the bootstrap
  std::uint64_t seed = 7;
  double adam_bytes = 28;  ///< bytes of memory traffic per parameter, of Form::adam
};
/// Throws std::logic_error when there are fewer points than parameters.
Fit fit(Form form, std::span<const Point> points, const FitOptions& options = {});

/// Relative drift of the machine over the run, for the error floor: between-pass spread of block
/// values, pooled over settings.
double between_pass_spread(std::span<const Point> points);

}  // namespace tidegate::calib
