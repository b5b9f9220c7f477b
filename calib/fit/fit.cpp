#include "calib/fit/fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "calib/fit/problem.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

using detail::Numbers;
using detail::Problem;
using Settings = std::vector<std::vector<std::size_t>>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double finest = 1e-4;  // noise that is assumed at least: what timers resolve

bool is_sound(Form form, const Point& point) {
  if (point.x.size() != detail::spec_of(form).coordinates) return false;
  for (const double x : point.x) {
    if (!std::isfinite(x) || x < 0) return false;
  }
  if (!std::isfinite(point.y)) return false;
  if (form == Form::capacity_region) return point.y >= 0 && point.y + point.x[0] > 0;
  return point.y > 0 && std::ranges::all_of(point.x, [](double x) { return x > 0; });
}

Numbers picked(const Numbers& values, const std::vector<std::size_t>& indices) {
  Numbers some;
  for (const std::size_t i : indices) some.push_back(values[i]);
  return some;
}

// Of all pairs of values within a setting; 0 without pairs.
double pair_spread(const Numbers& logs, const Settings& settings) {
  Numbers differences;
  for (const auto& members : settings) {
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = a + 1; b < members.size(); ++b) {
        differences.push_back(std::abs(logs[members[a]] - logs[members[b]]));
      }
    }
  }
  return differences.empty() ? 0 : 1.4826 * median(differences) / std::sqrt(2.0);
}

// Blocks count unless the other blocks of their setting, at least two, contradict them.
std::vector<bool> counting(const Numbers& errors, const Settings& settings) {
  constexpr double limit = 5;
  const double far = limit * std::max(finest, pair_spread(errors, settings));
  std::vector<bool> counts(errors.size(), true);
  for (const auto& members : settings) {
    if (members.size() < 3) continue;
    const double middle = median(picked(errors, members));
    for (const std::size_t i : members) counts[i] = std::abs(errors[i] - middle) <= far;
  }
  return counts;
}

// A robust standard deviation of the residuals of a fit with that many parameters.
double scale_of(const Numbers& errors, const std::vector<bool>& counts, std::size_t parameters) {
  Numbers sizes;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (counts[i]) sizes.push_back(std::abs(errors[i]));
  }
  const auto n = static_cast<double>(sizes.size());
  const double freedom = n - static_cast<double>(parameters);
  return freedom < 1 ? infinity : std::max(finest, 1.4826 * median(sizes) * std::sqrt(n / freedom));
}

struct Solution {
  Problem problem;
  std::vector<bool> counts;
  Numbers parameters;
};

Solution solution_of(Form form, std::span<const Point> points, const Settings& settings,
                     const FitOptions& options) {
  Solution s{
      detail::make_problem(form, points, options), std::vector<bool>(points.size(), true), {}};
  const std::vector<Numbers> starts = s.problem.spec().starts(points, s.problem.constant);
  s.parameters = solve(s.problem, points, s.counts, starts);
  const std::size_t few = s.parameters.size() + 5;
  if (points.size() < few) return s;
  for (int round = 0; round < 2; ++round) {
    const Numbers errors = s.problem.residuals(s.parameters, points);
    s.counts = counting(errors, settings);
    s.problem.bend = 1.345 * scale_of(errors, s.counts, s.parameters.size());
    std::vector<Numbers> again = starts;
    again.push_back(s.parameters);
    s.parameters = solve(s.problem, points, s.counts, again);
  }
  return s;
}

// Log errors of the points at `left_out` when the others are fitted; none when too few remain.
Numbers errors_without(const Solution& s, std::span<const Point> points,
                       const std::vector<std::size_t>& left_out) {
  std::vector<bool> counts = s.counts;
  for (const std::size_t i : left_out) counts[i] = false;
  const auto remaining = static_cast<std::size_t>(std::ranges::count(counts, true));
  if (remaining < s.parameters.size()) return {};
  const auto starts = twins(s.problem, points, s.parameters);
  const Numbers parameters = solve(s.problem, points, counts, starts);
  return picked(s.problem.residuals(parameters, points), left_out);
}

double held_out_setting(const Solution& s, std::span<const Point> points,
                        const Settings& settings) {
  Numbers sizes;
  for (const auto& members : settings) {
    if (settings.size() < 2) break;
    const Numbers errors = errors_without(s, points, members);
    if (!errors.empty()) sizes.push_back(std::abs(median(errors)));
  }
  return sizes.empty() ? infinity : median(sizes);
}

double held_out_pass(const Solution& s, std::span<const Point> points) {
  std::set<std::int32_t> passes;
  for (const Point& p : points) passes.insert(p.pass);
  Numbers sizes;
  for (const std::int32_t pass : passes) {
    if (passes.size() < 2) break;
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].pass == pass) members.push_back(i);
    }
    for (const double e : errors_without(s, points, members)) sizes.push_back(std::abs(e));
  }
  return sizes.empty() ? infinity : median(sizes);
}

double measurement_of(const Numbers& errors, const Settings& settings) {
  Numbers halves;
  for (const auto& members : settings) {
    const Interval interval = mean_interval(picked(errors, members));
    halves.push_back((interval.high - interval.low) / 2);
  }
  return median(halves);
}

double deviation(const Numbers& errors, std::size_t parameters) {
  double squares = 0;
  for (const double e : errors) squares += e * e;
  const double freedom =
      errors.size() > parameters ? static_cast<double>(errors.size() - parameters) : 1.0;
  return std::sqrt(squares / freedom);
}

std::vector<Interval> domain_of(std::span<const Point> points) {
  std::vector<Interval> domain;
  for (std::size_t j = 0; j < points[0].x.size(); ++j) {
    const auto [least, most] =
        std::ranges::minmax(points, {}, [j](const Point& p) { return p.x[j]; });
    domain.push_back({least.x[j], most.x[j]});
  }
  return domain;
}

bool is_usable(const Fit& fit, std::size_t settings) {
  const double allowed = std::max(2 * fit.measurement, 0.01);
  if (!std::isfinite(allowed) || !(fit.held_out_pass <= allowed)) return false;
  if (fit.form == name_of(Form::constant) && settings == 1) return true;
  return settings > fit.parameters.size() && fit.held_out_setting <= allowed;
}

}  // namespace

const char* name_of(Form form) { return detail::spec_of(form).name; }

std::optional<Form> form_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Form::gemm); ++i) {
    const auto form = static_cast<Form>(i);
    if (name == name_of(form)) return form;
  }
  return std::nullopt;
}

double value_of(Form form, std::span<const double> parameters, std::span<const double> x,
                const FitOptions& options) {
  const detail::FormSpec& spec = detail::spec_of(form);
  ensure(parameters.size() == spec.parameters.size() && x.size() == spec.coordinates,
         "parameters or coordinates of another form");
  return spec.model(parameters, x, detail::constant_of(form, options));
}

double Fit::at(std::span<const double> x) const {
  Numbers values;
  for (const Parameter& p : parameters) values.push_back(p.value);
  return model(values, x);
}

double Fit::parameter(const std::string& name) const {
  const auto at = std::ranges::find(parameters, name, &Parameter::name);
  ensure(at != parameters.end(), "a parameter that the form does not have");
  return at->value;
}

Fit fit(Form form, std::span<const Point> points, const FitOptions& options) {
  const detail::FormSpec& spec = detail::spec_of(form);
  ensure(points.size() >= spec.parameters.size(), "fewer points than parameters");
  ensure(std::ranges::all_of(points, [form](const Point& p) { return is_sound(form, p); }),
         "a point that is not one of the form");
  const Settings settings = detail::settings_of(points);
  const Solution s = solution_of(form, points, settings, options);
  const Numbers errors = s.problem.residuals(s.parameters, points);
  const auto intervals = intervals_of(s.problem, points, s.counts, s.parameters, options);

  Fit fit{.form = spec.name};
  for (std::size_t j = 0; j < s.parameters.size(); ++j) {
    fit.parameters.push_back({spec.parameters[j].name, s.parameters[j], intervals[j]});
  }
  fit.residual = deviation(errors, s.parameters.size());
  fit.outlying =
      static_cast<double>(std::ranges::count(s.counts, false)) / static_cast<double>(points.size());
  fit.held_out_setting = held_out_setting(s, points, settings);
  fit.held_out_pass = held_out_pass(s, points);
  fit.measurement = measurement_of(errors, settings);
  fit.domain = domain_of(points);
  fit.is_usable = is_usable(fit, settings.size());
  fit.model = [model = spec.model, constant = s.problem.constant](
                  std::span<const double> parameters, std::span<const double> x) {
    return model(parameters, x, constant);
  };
  return fit;
}

double between_pass_spread(std::span<const Point> points) {
  Numbers logs;
  for (const Point& p : points) {
    ensure(p.y > 0, "a spread of values that are not positive");
    logs.push_back(std::log(p.y));
  }
  return pair_spread(logs, detail::settings_of(points));
}

}  // namespace tidegate::calib
