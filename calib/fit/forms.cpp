#include "calib/fit/forms.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace tidegate::calib::detail {
namespace {

using Points = std::span<const Point>;
using Starts = std::vector<Numbers>;

// (a^p + b^p)^(1/p) of values that are not negative, without overflow.
double norm(double a, double b, double p) {
  const double large = std::max(a, b), small = std::min(a, b);
  if (large <= 0) return 0;
  return large * std::pow(1 + std::pow(small / large, p), 1 / p);
}

template <class F>
double least(Points points, const F& f) {
  return f(*std::ranges::min_element(points, {}, f));
}
template <class F>
double most(Points points, const F& f) {
  return f(*std::ranges::max_element(points, {}, f));
}
double y_of(const Point& p) { return p.y; }
double x_of(const Point& p) { return p.x[0]; }

// Between neighbours among the distinct first coordinates, in geometric middle.
Numbers gaps(Points points) {
  std::set<double> distinct;
  for (const Point& p : points) distinct.insert(p.x[0]);
  Numbers middles;
  for (auto at = distinct.begin(); at != distinct.end() && std::next(at) != distinct.end(); ++at) {
    middles.push_back(std::sqrt(*at * *std::next(at)));
  }
  if (middles.empty()) middles.push_back(*distinct.begin());
  return middles;
}

double constant_model(View p, View, double) { return p[0]; }
Starts constant_starts(Points points, double) {
  Numbers y;
  for (const Point& p : points) y.push_back(p.y);
  return {{median(y)}};
}

double latency_rate(View p, View x, double) { return p[0] + x[0] / p[1]; }
Starts latency_rate_starts(Points points, double) {
  const double rate = most(points, [](const Point& p) { return p.x[0] / p.y; });
  const double quickest = least(points, y_of);
  return {{0.5 * quickest, rate}, {0.02 * quickest, rate}};
}

double half_size(View p, View x, double) { return p[0] * x[0] / (x[0] + p[1]); }
Starts half_size_starts(Points points, double) {
  const double rate = most(points, y_of), low = least(points, x_of), high = most(points, x_of);
  return {{rate, low}, {rate, std::sqrt(low * high)}, {rate, 0.01 * low}};
}

double queue_saturating(View p, View x, double) {
  const double flying = x[0] * x[1];
  return flying / norm(p[1] + x[0] / p[2], flying / p[0], p[3]);
}
Starts queue_saturating_starts(Points points, double) {
  const double rate = most(points, y_of);
  const double quickest = least(points, [](const Point& p) { return p.x[0] * p.x[1] / p.y; });
  Starts starts;
  for (const double shape : {1.5, 5.0}) {
    for (const double channel : {1.0, 4.0}) {
      for (const double part : {0.8, 0.1}) {
        starts.push_back({rate, part * quickest, channel * rate, shape});
      }
    }
  }
  return starts;
}

double thread_saturating(View p, View x, double) {
  return x[0] * p[0] / norm(1, x[0] * p[0] / p[1], p[2]);
}
Starts thread_saturating_starts(Points points, double) {
  const double one = most(points, [](const Point& p) { return p.y / p.x[0]; });
  const double all = most(points, y_of);
  return {{one, all, 1.5}, {one, all, 5}, {one, 2 * all, 2}};
}

double adam(View p, View x, double bytes) {
  return p[0] + std::max(x[0] * p[1] / x[1], x[0] * bytes / p[2]);
}
Starts adam_starts(Points points, double bytes) {
  const double quickest = least(points, y_of);
  const double work = least(points, [](const Point& p) { return p.y * p.x[1] / p.x[0]; });
  const double rate = most(points, [bytes](const Point& p) { return bytes * p.x[0] / p.y; });
  Starts starts;
  for (const double part : {0.5, 0.02}) {
    for (const double slower : {1.0, 2.0}) {
      starts.push_back({part * quickest, slower * work, rate});
      starts.push_back({part * quickest, slower * work, 0.6 * rate});
    }
  }
  return starts;
}

double capacity_region(View p, View x, double) {
  if (x[0] >= p[1]) return 0;
  return p[0] * std::pow(1 - std::pow(x[0] / p[1], p[2]), 1 / p[2]);
}
Starts capacity_region_starts(Points points, double) {
  // A side that was never used is unknown; anything positive is a place to begin.
  const double most_read = most(points, y_of), most_written = most(points, x_of);
  const double read = most_read > 0 ? most_read : most_written;
  const double written = most_written > 0 ? most_written : most_read;
  return {{read, written, 1}, {read, written, 2}, {read, written, 5}};
}

double cache_knee(View p, View x, double) {
  const double found = x[0] <= p[1] ? 1 : std::pow(p[1] / x[0], p[2]);
  return 1 / (found / p[0] + 1 - found);
}
Starts cache_knee_starts(Points points, double) {
  Starts starts;
  for (const double size : gaps(points)) {
    for (const double shape : {1.0, 5.0}) starts.push_back({most(points, y_of), size, shape});
  }
  return starts;
}

double leaky_bucket(View p, View x, double) { return x[0] <= p[2] ? p[0] : p[1]; }
Starts leaky_bucket_starts(Points points, double) {
  Starts starts;
  for (const double credit : gaps(points)) {
    Numbers first, second;
    for (const Point& p : points) (p.x[0] <= credit ? first : second).push_back(p.y);
    if (first.empty()) first = second;
    if (second.empty()) second = first;
    starts.push_back({median(first), median(second), credit});
  }
  return starts;
}

double gemm(View p, View x, double element) {
  const double m = x[0], n = x[1], k = x[2], tile = p[4];
  const double padded = std::ceil(m / tile) * tile * std::ceil(n / tile) * tile;
  const double compute = 2 * padded * (k + p[2]) / p[1];  // 2mnk / (P e)
  return p[0] + std::max(compute, element * (m * k + k * n + m * n) / p[3]);
}
Starts gemm_starts(Points points, double element) {
  const double quickest = least(points, y_of);
  const double peak =
      most(points, [](const Point& p) { return 2 * p.x[0] * p.x[1] * p.x[2] / p.y; });
  const double bytes = most(points, [element](const Point& p) {
    return element * (p.x[0] * p.x[2] + p.x[2] * p.x[1] + p.x[0] * p.x[1]) / p.y;
  });
  const double k = least(points, [](const Point& p) { return p.x[2]; });
  Starts starts;
  for (const double tile : {1., 8., 16., 32., 64., 128., 256.}) {
    for (const double part : {0.5, 0.05}) {
      starts.push_back({part * quickest, peak, 0.2 * k, bytes, tile});
    }
  }
  return starts;
}

constexpr auto shape = Kind::shape;
constexpr auto choice = Kind::choice;

}  // namespace

const FormSpec& spec_of(Form form) {
  static const std::array<FormSpec, 10> table = {{
      {"constant", 1, {{"c"}}, constant_model, constant_starts},
      {"latency_rate", 1, {{"t0"}, {"rate"}}, latency_rate, latency_rate_starts},
      {"half_size", 1, {{"rate"}, {"half"}}, half_size, half_size_starts},
      {"queue_saturating",
       2,
       {{"B_max"}, {"L0"}, {"B_ch"}, {"p", shape}},
       queue_saturating,
       queue_saturating_starts},
      {"thread_saturating",
       1,
       {{"B_1"}, {"B_max"}, {"p", shape}},
       thread_saturating,
       thread_saturating_starts},
      {"adam", 2, {{"t0"}, {"c"}, {"B"}}, adam, adam_starts},
      {"capacity_region", 1, {{"R"}, {"W"}, {"p", shape}}, capacity_region, capacity_region_starts},
      {"cache_knee", 1, {{"ratio"}, {"size"}, {"p", shape}}, cache_knee, cache_knee_starts, 1},
      {"leaky_bucket",
       1,
       {{"fast"}, {"slow"}, {"credit", choice}},
       leaky_bucket,
       leaky_bucket_starts,
       2},
      {"gemm", 3, {{"t0"}, {"P"}, {"k0"}, {"B"}, {"tile", choice}}, gemm, gemm_starts},
  }};
  return table.at(static_cast<std::size_t>(form));
}

double constant_of(Form form, const FitOptions& options) {
  return form == Form::gemm ? options.gemm_element : options.adam_bytes;
}

double residual(Form form, View parameters, const Point& point, double constant) {
  if (form == Form::capacity_region) {
    return -std::log(norm(point.y / parameters[0], point.x[0] / parameters[1], parameters[2]));
  }
  return std::log(spec_of(form).model(parameters, point.x, constant) / point.y);
}

Point shifted(Form form, Point point, double by) {
  point.y *= std::exp(by);
  if (form == Form::capacity_region) point.x[0] *= std::exp(by);
  return point;
}

}  // namespace tidegate::calib::detail
