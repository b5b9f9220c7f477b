#pragma once

#include <limits>
#include <vector>

#include "calib/fit/forms.hpp"
#include "calib/fit/least_squares.hpp"

/// One fit of one form to one set of points: what fit(), its held-out errors and its bootstrap
/// repeat.
namespace tidegate::calib::detail {

struct Problem {
  Form form;
  double constant = 0;
  std::vector<Side> box;  ///< logarithms of all parameters; not used of a choice
  /// Log errors beyond it grow linearly in the loss (Huber 1964).
  double bend = std::numeric_limits<double>::infinity();

  const FormSpec& spec() const { return spec_of(form); }
  Numbers residuals(View parameters, std::span<const Point> points) const;
};
/// Its box is around the form's starts at these points.
Problem make_problem(Form form, std::span<const Point> points, const FitOptions& options);

/// The best fit from any of the starts. `counts`: whether a point takes part.
Numbers solve(const Problem& problem, std::span<const Point> points,
              const std::vector<bool>& counts, const std::vector<Numbers>& starts);
/// Where to begin again near a solution: `parameters`, and twins with the next value to
/// either side of what is a choice, or with a bend a little before and after.
std::vector<Numbers> twins(const Problem& problem, std::span<const Point> points,
                           const Numbers& parameters);

/// How the logarithms of the parameters follow log errors of the points; zero rows for choices.
std::vector<Numbers> response_of(const Problem& problem, std::span<const Point> points,
                                 const std::vector<bool>& counts, const Numbers& parameters);

/// Indices of the points of each setting.
std::vector<std::vector<std::size_t>> settings_of(std::span<const Point> points);

/// The 95 % interval of each parameter.
std::vector<Interval> intervals_of(const Problem& problem, std::span<const Point> points,
                                   const std::vector<bool>& counts, const Numbers& parameters,
                                   const FitOptions& options);

}  // namespace tidegate::calib::detail
