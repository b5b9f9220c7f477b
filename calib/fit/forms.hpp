#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "calib/fit/fit.hpp"

/// What a form is: its parameters, its equation, and where to begin. Only fit.cpp needs it.
namespace tidegate::calib::detail {

enum class Kind {
  scale,  ///< positive, within a factor of 10000 of the starts
  shape,  ///< an exponent, within 0.5 and 20
  choice  ///< takes one of the values that the starts give
};
struct FormParameter {
  const char* name;
  Kind kind = Kind::scale;
};
inline constexpr double least_shape = 0.5, most_shape = 20;

using Numbers = std::vector<double>;
using View = std::span<const double>;

struct FormSpec {
  const char* name;
  std::size_t coordinates;
  std::vector<FormParameter> parameters;
  /// `constant`: adam_bytes or gemm_element.
  double (*model)(View parameters, View x, double constant);
  std::vector<Numbers> (*starts)(std::span<const Point> points, double constant);
  /// A parameter that is a place on the only coordinate, or -1: it is known between two settings.
  int placed = -1;
};
const FormSpec& spec_of(Form form);
double constant_of(Form form, const FitOptions& options);

/// log(model/measured); for capacity_region along the ray.
double residual(Form form, View parameters, const Point& point, double constant);
/// The point whose residual is smaller by `by`.
Point shifted(Form form, Point point, double by);

}  // namespace tidegate::calib::detail
