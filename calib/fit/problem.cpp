#include "calib/fit/problem.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace tidegate::calib::detail {
namespace {

// Indices of the parameters that are no choice.
std::vector<std::size_t> free_of(const FormSpec& spec) {
  std::vector<std::size_t> free;
  for (std::size_t j = 0; j < spec.parameters.size(); ++j) {
    if (spec.parameters[j].kind != Kind::choice) free.push_back(j);
  }
  return free;
}

// Residuals of the counting points over the logarithms of the free parameters, other parameters as
// in `base`; those of the rest are zero.
Residuals over_logs(const Problem& problem, std::span<const Point> points,
                    const std::vector<bool>& counts, const Numbers& base, double bend) {
  return [&problem, points, &counts, base = base, bend, free = free_of(problem.spec())](
             View logs, std::span<double> out) mutable {
    for (std::size_t j = 0; j < free.size(); ++j) base[free[j]] = std::exp(logs[j]);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double r = counts[i] ? residual(problem.form, base, points[i], problem.constant) : 0.0;
      const double size = std::abs(r);
      out[i] = size <= bend ? r : std::copysign(std::sqrt(bend * (2 * size - bend)), r);
    }
  };
}

Numbers logs_of(const Numbers& parameters, const std::vector<std::size_t>& free) {
  Numbers logs;
  for (const std::size_t j : free) logs.push_back(std::log(parameters[j]));
  return logs;
}

}  // namespace

Numbers Problem::residuals(View parameters, std::span<const Point> points) const {
  Numbers all;
  for (const Point& p : points) all.push_back(residual(form, parameters, p, constant));
  return all;
}

Problem make_problem(Form form, std::span<const Point> points, const FitOptions& options) {
  const double constant = constant_of(form, options);
  const FormSpec& spec = spec_of(form);
  const std::vector<Numbers> starts = spec.starts(points, constant);
  std::vector<Side> box;
  for (std::size_t j = 0; j < spec.parameters.size(); ++j) {
    double low = std::log(least_shape), high = std::log(most_shape);
    if (spec.parameters[j].kind != Kind::shape) {
      const auto [least, most] =
          std::ranges::minmax(starts, {}, [j](const Numbers& s) { return s[j]; });
      low = std::log(least[j]) - std::log(1e4);
      high = std::log(most[j]) + std::log(1e4);
    }
    box.push_back({(low + high) / 2, (high - low) / 2});
  }
  return {.form = form, .constant = constant, .box = std::move(box)};
}

Numbers solve(const Problem& problem, std::span<const Point> points,
              const std::vector<bool>& counts, const std::vector<Numbers>& starts) {
  const std::vector<std::size_t> free = free_of(problem.spec());
  std::vector<Side> sides;
  for (const std::size_t j : free) sides.push_back(problem.box[j]);
  Numbers best = starts.front();
  double least = std::numeric_limits<double>::infinity();
  for (const Numbers& start : starts) {
    const Residuals residuals = over_logs(problem, points, counts, start, problem.bend);
    const Minimum found = minimize(residuals, points.size(), logs_of(start, free), sides);
    if (found.squares >= least) continue;
    least = found.squares;
    best = start;
    for (std::size_t j = 0; j < free.size(); ++j) best[free[j]] = std::exp(found.x[j]);
  }
  return best;
}

std::vector<Numbers> twins(const Problem& problem, std::span<const Point> points,
                           const Numbers& parameters) {
  const FormSpec& spec = problem.spec();
  const auto choice = std::ranges::find(spec.parameters, Kind::choice, &FormParameter::kind);
  std::vector<Numbers> all{parameters};
  const auto add = [&](std::size_t j, double value) {
    all.push_back(parameters);
    all.back()[j] = value;
  };
  if (choice == spec.parameters.end()) {
    // Around a bend there are several minima.
    for (const double factor : {0.6, 1.6}) {
      if (spec.placed < 0) break;
      const auto j = static_cast<std::size_t>(spec.placed);
      add(j, factor * parameters[j]);
    }
    return all;
  }
  const auto j = static_cast<std::size_t>(choice - spec.parameters.begin());
  std::set<double> values;
  for (const Numbers& s : spec.starts(points, problem.constant)) values.insert(s[j]);
  const std::vector<double> sorted(values.begin(), values.end());
  const auto here = std::ranges::lower_bound(sorted, parameters[j]) - sorted.begin();
  for (auto i = here - 1; i <= here + 1; ++i) {
    if (i < 0 || i >= std::ssize(sorted)) continue;
    const double value = sorted[static_cast<std::size_t>(i)];
    if (value != parameters[j]) add(j, value);
  }
  return all;
}

std::vector<Numbers> response_of(const Problem& problem, std::span<const Point> points,
                                 const std::vector<bool>& counts, const Numbers& parameters) {
  const std::vector<std::size_t> free = free_of(problem.spec());
  const Residuals residuals =
      over_logs(problem, points, counts, parameters, std::numeric_limits<double>::infinity());
  const auto rows = response(residuals, points.size(), logs_of(parameters, free));
  std::vector<Numbers> all(parameters.size(), Numbers(points.size(), 0.0));
  for (std::size_t j = 0; j < free.size(); ++j) all[free[j]] = rows[j];
  return all;
}

std::vector<std::vector<std::size_t>> settings_of(std::span<const Point> points) {
  using Key = std::tuple<std::int32_t, std::vector<double>>;
  std::map<Key, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool by_number = points[i].setting >= 0;
    groups[{points[i].setting, by_number ? Numbers{} : points[i].x}].push_back(i);
  }
  std::vector<std::vector<std::size_t>> all;
  for (const auto& [key, indices] : groups) all.push_back(indices);
  return all;
}

}  // namespace tidegate::calib::detail
