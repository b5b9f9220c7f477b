#pragma once

#include <string>
#include <vector>

/// What the charts of a page have in common. For sim/page alone.
namespace tidegate::page {

constexpr double chart_width = 900;

/// The opening tag of a picture, with its title and description.
std::string open_svg(double height, const std::string& title, const std::string& description);
/// Names with the colours of their indices.
std::string legend(const std::vector<std::string>& names);
std::string figure(const std::string& title, const std::string& inner);

struct Scale {
  double from, to, low, high;
  double operator()(double v) const { return low + (v - from) / (to - from) * (high - low); }
};

}  // namespace tidegate::page
