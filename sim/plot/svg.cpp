#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/core.h>

#include "sim/plot/chart.hpp"

namespace tidegate {
namespace {

constexpr double width = 760, height = 510;
constexpr double left = 70, right = 728, top = 116, bottom = 412;
constexpr double legend_y = 96, line_height = 15;
constexpr double glyph = 6.2;  // width of a character of a point's label, about
constexpr double mark = 4.5;   // half of a marker's size

// Okabe and Ito's colours, which differ for colour-blind eyes too (jfly.uni-koeln.de/color), darker
// on light ground and lighter on dark ground.
constexpr std::array<std::string_view, 8> on_light = {"#0072b2", "#c04a00", "#007a5a", "#a8487c",
                                                      "#7a6a00", "#2f6f9f", "#5a5a5a", "#8a3ffc"};
constexpr std::array<std::string_view, 8> on_dark = {"#56b4e9", "#f0934e", "#35c79b", "#e29bc0",
                                                     "#e8d84a", "#9cc9ee", "#b5b5b5", "#be95ff"};

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    // XML 1.0 has no other control characters.
    else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t')
      safe += c;
  }
  return safe;
}

std::string style() {
  std::string light, dark;
  for (std::size_t i = 0; i < on_light.size(); ++i) {
    constexpr const char* rule = ".c{0}{{stroke:{1};fill:{1}}}";
    light += fmt::format(rule, i, on_light[i]);
    dark += fmt::format(rule, i, on_dark[i]);
  }
  return "<style>text{font-family:system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif;"
         "font-size:12px;fill:#222}.title{font-size:17px;font-weight:600}.small{font-size:11px}"
         ".soft{fill:#555}.ground{fill:#fff}.grid{stroke:#e3e3e3}.axis{stroke:#777}"
         ".limit{stroke:#555;stroke-dasharray:2 3}.line{fill:none;stroke-width:2}"
         ".unfit{stroke-dasharray:5 4}.point{stroke-width:1.8}.halo{stroke:#fff;stroke-width:3;"
         "stroke-linejoin:round;paint-order:stroke}" +
         light +
         ".line{fill:none}.hollow{fill:#fff}@media(prefers-color-scheme:dark){text{fill:#eee}"
         ".soft{fill:#aaa}.ground{fill:#16181c}.grid{stroke:#30343a}.axis{stroke:#999}"
         ".limit{stroke:#aaa}.halo{stroke:#16181c}" +
         dark + ".line{fill:none}.hollow{fill:#16181c}}</style>\n";
}

std::string text_at(double x, double y, std::string_view classes, std::string_view anchor,
                    std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\" text-anchor=\"{}\">{}</text>\n",
                     x, y, classes, anchor, escaped(text));
}

// Lines of text, the first at y.
std::string texts_at(double x, double y, std::string_view classes, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += text_at(x, y, classes, "start", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    y += line_height;
  }
  return out;
}

std::string line_of(double x1, double y1, double x2, double y2, std::string_view classes) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, classes);
}

// Circle, square, triangle, diamond: series differ without colours.
std::string marker(double x, double y, std::size_t series, bool is_hollow,
                   std::string_view title = "") {
  const std::string classes =
      fmt::format("point c{}{}", series % on_light.size(), is_hollow ? " hollow" : "");
  const std::string inside = title.empty() ? "" : fmt::format("<title>{}</title>", escaped(title));
  const double m = mark;
  switch (series % 4) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" class=\"{}\">{}</circle>\n",
                         x, y, m, classes, inside);
    case 1:
      return fmt::format("<path d=\"M{:.1f} {:.1f}h{}v{}h-{}z\" class=\"{}\">{}</path>\n",
                         x - m + 0.5, y - m + 0.5, 2 * m - 1, 2 * m - 1, 2 * m - 1, classes,
                         inside);
    case 2:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l{} {}h-{}z\" class=\"{}\">{}</path>\n", x,
                         y - m - 0.5, m + 0.5, 2 * m, 2 * m + 1, classes, inside);
    default:
      return fmt::format(
          "<path d=\"M{:.1f} {:.1f}l{} {}l-{} {}l-{} -{}z\" class=\"{}\">{}</path>\n", x, y - m - 1,
          m + 1, m + 1, m + 1, m + 1, m + 1, m + 1, classes, inside);
  }
}

struct Box {
  double x1, y1, x2, y2;
  bool touches(const Box& b) const { return x1 < b.x2 && b.x1 < x2 && y1 < b.y2 && b.y1 < y2; }
};

// Where data lies on the page.
class Frame {
 public:
  explicit Frame(const Chart& chart) {
    double x_most = chart.limit ? chart.limit->x : 0, y_most = 0, y_least = INFINITY;
    for (const Chart::Series& s : chart.series) {
      for (const Chart::Point& p : s.points) {
        x_most = std::max(x_most, p.x);
        y_most = std::max(y_most, p.y), y_least = std::min(y_least, p.y);
      }
    }
    xs_ = axis_ticks(0, x_most, 10);
    ys_ = axis_ticks(y_least, y_most, 8);
  }
  double x(double v) const { return left + (right - left) * v / xs_.back(); }
  double y(double v) const {
    return bottom - (bottom - top) * (v - ys_.front()) / (ys_.back() - ys_.front());
  }
  const std::vector<double>& xs() const { return xs_; }
  const std::vector<double>& ys() const { return ys_; }

 private:
  std::vector<double> xs_, ys_;
};

std::string tick_text(double v) { return fmt::format("{:.6g}", v); }

std::string axes(const Chart& chart, const Frame& frame) {
  std::string out;
  for (const double v : frame.ys()) {
    out += line_of(left, frame.y(v), right, frame.y(v), "grid");
    out += text_at(left - 8, frame.y(v) + 4, "soft", "end", tick_text(v));
  }
  for (const double v : frame.xs()) {
    out += line_of(frame.x(v), top, frame.x(v), bottom, "grid");
    out += text_at(frame.x(v), bottom + 18, "soft", "middle", tick_text(v));
  }
  out += line_of(left, bottom, right, bottom, "axis") + line_of(left, top, left, bottom, "axis");
  out += text_at((left + right) / 2, bottom + 40, "", "middle", chart.x_label);
  const double middle = (top + bottom) / 2;
  out += fmt::format(
      "<text x=\"18\" y=\"{:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {:.1f})\">{}"
      "</text>\n",
      middle, middle, escaped(chart.y_label));
  return out;
}

std::string limit_line(const Chart& chart, const Frame& frame) {
  if (!chart.limit) return "";
  const double x = frame.x(chart.limit->x);
  const bool is_right = x > (left + right) / 2;
  return line_of(x, top, x, bottom, "limit") +
         text_at(x + (is_right ? -6 : 6), bottom - 8, "small soft halo", is_right ? "end" : "start",
                 chart.limit->label);
}

std::string legend(const Chart& chart) {
  std::string out;
  double x = left;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    if (chart.series[s].is_joined)
      out += line_of(x, legend_y, x + 24, legend_y, fmt::format("line c{}", s % on_light.size()));
    out += marker(x + 12, legend_y, s, false);
    out += text_at(x + 31, legend_y + 4, "", "start", chart.series[s].name);
    x += 31 + 7 * static_cast<double>(chart.series[s].name.size()) + 22;
  }
  return out;
}

std::string lines(const Chart& chart, const Frame& frame) {
  std::string out;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    const auto& points = chart.series[s].points;
    for (std::size_t i = 1; i < points.size() && chart.series[s].is_joined; ++i) {
      const bool is_unfit = points[i].is_hollow || points[i - 1].is_hollow;
      out += line_of(frame.x(points[i - 1].x), frame.y(points[i - 1].y), frame.x(points[i].x),
                     frame.y(points[i].y),
                     fmt::format("line c{}{}", s % on_light.size(), is_unfit ? " unfit" : ""));
    }
  }
  return out;
}

// Above its point, or below, right or left of it: wherever it first touches nothing.
std::string label_of(const Chart::Point& point, double x, double y, std::vector<Box>& taken) {
  const double w = glyph * static_cast<double>(point.label.size()), h = 11;
  const std::array<std::pair<double, double>, 4> places = {
      {{x - w / 2, y - 8}, {x - w / 2, y + 8 + h}, {x + 9, y + 4}, {x - 9 - w, y + 4}}};
  const auto box_of = [&](std::pair<double, double> at) {
    return Box{at.first - 1, at.second - h, at.first + w + 1, at.second + 2};
  };
  std::size_t chosen = 0;
  for (std::size_t i = places.size(); i-- > 0;) {
    const Box box = box_of(places[i]);
    const bool is_free = std::ranges::none_of(taken, [&](const Box& b) { return b.touches(box); });
    if (is_free && box.y2 < bottom && box.x1 > left) chosen = i;
  }
  taken.push_back(box_of(places[chosen]));
  return text_at(places[chosen].first, places[chosen].second, "small halo", "start", point.label);
}

std::string points(const Chart& chart, const Frame& frame) {
  std::vector<Box> taken;
  std::string marks, labels;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    for (const Chart::Point& p : chart.series[s].points) {
      const double x = frame.x(p.x), y = frame.y(p.y);
      marks += marker(x, y, s, p.is_hollow, p.title);
      taken.push_back({x - mark, y - mark, x + mark, y + mark});
    }
  }
  for (const Chart::Series& series : chart.series) {
    for (const Chart::Point& p : series.points)
      labels += label_of(p, frame.x(p.x), frame.y(p.y), taken);
  }
  return marks + labels;
}

}  // namespace

std::string to_svg(const Chart& chart) {
  const Frame frame(chart);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" aria-labelledby=\"chart-title chart-description\">\n"
      "<title id=\"chart-title\">{2}</title>\n<desc id=\"chart-description\">{3}</desc>\n",
      width, height, escaped(chart.title), escaped(chart.description));
  out +=
      style() + fmt::format("<rect width=\"{}\" height=\"{}\" class=\"ground\"/>\n", width, height);
  out += text_at(left, 32, "title", "start", chart.title);
  out += texts_at(left, 54, "soft", chart.subtitle);
  out += legend(chart) + axes(chart, frame) + limit_line(chart, frame) + lines(chart, frame) +
         points(chart, frame);
  out += texts_at(left, height - 34, "small soft", chart.note);
  return out + "</svg>\n";
}

}  // namespace tidegate
