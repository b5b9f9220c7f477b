#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// A chart of points joined by lines, as a value, and as one SVG file.
namespace tidegate {

struct Chart {
  struct Point {
    double x = 0, y = 0;
    std::string label;       ///< beside the point: "4"
    std::string title;       ///< all that is known of it: shown on hovering, read aloud
    bool is_hollow = false;  ///< drawn as an outline, its line dashed
  };
  struct Series {
    std::string name;
    std::vector<Point> points;  ///< in the order of the line
    bool is_joined = true;      ///< by a line
  };
  struct Line {
    double x = 0;
    std::string label;
  };

  std::string title, subtitle;  ///< subtitle and note: two lines each, parted by '\n'
  std::string description;      ///< the chart in words, for those who do not see it
  std::string x_label, y_label, note;
  std::vector<Series> series;
  std::optional<Line> limit;  ///< a vertical line
};

/// Round values from at most `from` to at least `to`, in steps of 1, 2 or 5 times a power of ten:
/// of those steps the smallest that needs no more than `most` intervals. `from` < `to`.
std::vector<double> ticks(double from, double to, std::size_t most);
/// The values that an axis shows for points between `least` and `largest`, both not negative: from
/// zero unless all points lie above half of the largest.
std::vector<double> axis_ticks(double least, double largest, std::size_t most);

/// One self-contained file, no references: readable on light and dark ground (it follows
/// prefers-color-scheme), series told apart by colour and by shape, <title> and <desc> for screen
/// readers. `series` beyond eight repeat colours.
std::string to_svg(const Chart& chart);

}  // namespace tidegate
