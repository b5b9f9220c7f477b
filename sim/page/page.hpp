#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/report/table.hpp"

/// One self-contained HTML file: no network, light and dark by the reader's system, usable by
/// keyboard and screen reader, readable when printed.
///
/// A page is a title, a summary and sections, each a piece of HTML made by the functions below.
/// Everything that is drawn is also there in words: an SVG has a title and a description, a canvas
/// a table.
namespace tidegate {
struct Chart;
}
namespace tidegate::page {

/// A piece of HTML; made only here, so that text never becomes markup.
struct Html {
  std::string text;
  Html& operator+=(const Html& other) { return text += other.text, *this; }
};

std::string escaped(const std::string& text);
/// <p>, one per line of the text.
Html paragraphs(const std::string& text);
Html preformatted(const std::string& text);
/// The first column holds row headers; numbers stand right where the table's alignment says so. An
/// empty table gives nothing.
Html table(const Table& table, const std::string& caption);
Html list(const std::vector<std::string>& lines);
/// A value large, with its name beneath: the summary's figures.
struct Figure {
  std::string name, value, note;
};
Html figures(const std::vector<Figure>& figures);
/// Closed by default; opened for printing.
Html details(const std::string& summary, const Html& body);

/// Parts of a whole over x, stacked from below, with the capacity as a line.
struct Area {
  struct Layer {
    std::string name;
    std::vector<double> y;  ///< by point of x
  };
  std::string title, description, x_label, y_label;
  std::vector<double> x;
  std::vector<Layer> layers;  ///< the lowest first
  double limit = 0;           ///< 0: none
  std::string limit_label;
};
Html area(const Area& area);

/// Measured points, and curves that are to go through them. Series differ by colour and by shape.
struct Curves {
  struct Point {
    double x = 0, y = 0;
    std::string title;  ///< all that is known of it: shown on hovering
  };
  struct Series {
    std::string name;
    std::vector<Point> points;
    std::vector<std::pair<double, double>> curve;  ///< x, y, in order of x
  };
  std::string title, description, x_label, y_label;
  std::vector<Series> series;
  bool x_is_log = false, y_is_log = false;  ///< then all values lie above zero
};
/// Nothing where there is no point.
Html curves(const Curves& curves);

/// Horizontal bars. `value_text` is written at the end of each.
struct Bars {
  struct Bar {
    std::string name;
    double value = 0;
    double second = 0;  ///< drawn over it, darker; 0: none
    std::string value_text;
  };
  std::string title, description;
  std::vector<Bar> bars;
  double most = 0;  ///< of the axis; 0: the largest value
};
Html bars(const Bars& bars);

/// A chart as a picture of its own: its styles stay within. Its description is read aloud.
Html picture(const Chart& chart);

/// Tasks in time on lanes, which the reader zooms and moves by wheel, drag and keys.
struct Lanes {
  struct Box {
    double from = 0, to = 0;  ///< seconds
    std::uint32_t name = 0;   ///< of `names`
    std::uint32_t color = 0;
  };
  struct Lane {
    std::string name;
    std::vector<Box> boxes;  ///< ascending
  };
  std::string title, description;
  std::vector<std::string> names;
  std::vector<Lane> lanes;
  double from = 0, to = 0;
};
Html lanes(const Lanes& lanes);

struct Section {
  std::string title;
  Html body;
};
struct Page {
  std::string title, subtitle;
  Html summary;
  std::vector<Section> sections;  ///< those without a body are left out
  std::string footer;
};
std::string to_html(const Page& page);

}  // namespace tidegate::page
