#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "sim/page/chart_parts.hpp"
#include "sim/page/page.hpp"
#include "sim/page/style.hpp"
#include "sim/plot/chart.hpp"

namespace tidegate::page {
namespace {

constexpr double height = 360, left = 84, right = 20, top = 16, bottom = 44, mark = 4;

// 1, 2, 5 times powers of ten around the range; powers alone where it is long.
std::vector<double> log_ticks(double from, double to) {
  const bool is_long = to / from > 300;
  std::vector<double> all;
  const int first = static_cast<int>(std::floor(std::log10(from)));
  const int last = static_cast<int>(std::ceil(std::log10(to)));
  for (int power = first; power <= last; ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (!is_long || factor == 1) all.push_back(factor * std::pow(10, power));
    }
  }
  // The last at or below the range, to the first at or above it.
  constexpr double slack = 1e-9;
  const auto begin = std::ranges::upper_bound(all, from * (1 + slack));
  const auto end = std::ranges::lower_bound(all, to * (1 - slack));
  return {begin == all.begin() ? begin : begin - 1, end == all.end() ? end : end + 1};
}

// From data to the page, with the values that are written at the axis.
class Axis {
 public:
  Axis(double least, double most, bool is_log, double low, double high, std::size_t most_ticks)
      : is_log_(is_log) {
    if (is_log) {
      ticks_ = log_ticks(least, most > least ? most : 2 * least);
    } else {
      const double pad = most > least ? 0 : std::max(std::abs(most), 1.0);
      ticks_ = ticks(least - pad, most + pad, most_ticks);
    }
    scale_ = {place(ticks_.front()), place(ticks_.back()), low, high};
  }
  double operator()(double v) const { return scale_(place(v)); }
  const std::vector<double>& values() const { return ticks_; }

 private:
  double place(double v) const { return is_log_ ? std::log10(v) : v; }
  bool is_log_;
  std::vector<double> ticks_;
  Scale scale_{};
};

struct Range {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  void take(double v) { least = std::min(least, v), most = std::max(most, v); }
};

struct Frame {
  Axis x, y;
};
Frame frame_of(const Curves& c) {
  Range x, y;
  for (const Curves::Series& s : c.series) {
    for (const Curves::Point& p : s.points) x.take(p.x), y.take(p.y);
    for (const auto& [at, value] : s.curve) x.take(at), y.take(value);
  }
  // Rates and times begin at zero, what scatters around zero does not.
  if (!c.y_is_log && y.least > 0) y.least = 0;
  if (!c.x_is_log && x.least > 0) x.least = 0;
  return {Axis(x.least, x.most, c.x_is_log, left, chart_width - right, 10),
          Axis(y.least, y.most, c.y_is_log, height - bottom, top, 7)};
}

std::string axes(const Curves& c, const Frame& f) {
  std::string out;
  for (const double v : f.y.values()) {
    out += fmt::format(
        "<line class=\"rule\" x1=\"{:g}\" x2=\"{:g}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text "
        "class=\"soft\" x=\"{:g}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>\n",
        left, chart_width - right, f.y(v), f.y(v), left - 6, f.y(v) + 4, v);
  }
  for (const double v : f.x.values()) {
    out += fmt::format(
        "<line class=\"rule\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:g}\" y2=\"{2:g}\"/><text "
        "class=\"soft\" x=\"{0:.1f}\" y=\"{3:g}\" text-anchor=\"middle\">{4:.4g}</text>\n",
        f.x(v), top, height - bottom, height - bottom + 16, v);
  }
  return out + fmt::format(
                   "<text class=\"soft\" x=\"{:g}\" y=\"{:g}\" text-anchor=\"middle\">{}</text>"
                   "<text class=\"soft\" transform=\"translate(16 {:g}) rotate(-90)\" "
                   "text-anchor=\"middle\">{}</text>\n",
                   (left + chart_width) / 2, height - 8, escaped(c.x_label), (height - bottom) / 2,
                   escaped(c.y_label));
}

std::string curve_of(const Curves::Series& s, const Frame& f, std::size_t color) {
  if (s.curve.size() < 2) return "";
  std::string path;
  for (const auto& [x, y] : s.curve) {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", f.x(x), f.y(y));
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"var(--c{})\" stroke-width=\"1.6\"/>\n",
                     path, color);
}

// Circle, square, triangle, diamond.
std::string shape_of(std::size_t series, double x, double y) {
  switch (series % 4) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:g}\"", x, y, mark);
    case 1:
      return fmt::format("<path d=\"M{:.1f} {:.1f}h{:g}v{:g}h-{:g}z\"", x - mark, y - mark,
                         2 * mark, 2 * mark, 2 * mark);
    case 2:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l{:g} {:g}h-{:g}z\"", x, y - mark - 1, mark + 1,
                         2 * mark, 2 * mark + 2);
    default:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l{:g} {:g}l-{:g} {:g}l-{:g} -{:g}z\"", x,
                         y - mark - 1, mark + 1, mark + 1, mark + 1, mark + 1, mark + 1, mark + 1);
  }
}

std::string points_of(const Curves::Series& s, const Frame& f, std::size_t series) {
  std::string out;
  for (const Curves::Point& p : s.points) {
    const std::string title = p.title.empty() ? "" : "<title>" + escaped(p.title) + "</title>";
    const char* end = series % 4 == 0 ? "circle" : "path";
    out += fmt::format("{} fill=\"var(--c{})\" fill-opacity=\"0.75\">{}</{}>\n",
                       shape_of(series, f.x(p.x), f.y(p.y)), series % colors, title, end);
  }
  return out;
}

}  // namespace

Html curves(const Curves& c) {
  const bool has_points =
      std::ranges::any_of(c.series, [](const auto& s) { return !s.points.empty(); });
  if (!has_points) return {};
  const Frame frame = frame_of(c);
  std::string svg = open_svg(height, c.title, c.description) + axes(c, frame);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < c.series.size(); ++i) {
    svg += curve_of(c.series[i], frame, i % colors) + points_of(c.series[i], frame, i);
    names.push_back(c.series[i].name);
  }
  const bool has_names = names.size() > 1 || !names[0].empty();
  return {figure(c.title, (has_names ? legend(names) : "") + svg + "</svg>\n")};
}

}  // namespace tidegate::page
