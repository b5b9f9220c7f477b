#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/page/chart_parts.hpp"
#include "sim/page/page.hpp"
#include "sim/page/style.hpp"
#include "sim/plot/chart.hpp"

namespace tidegate::page {
namespace {

constexpr double width = chart_width, height = 300, left = 70, right = 20, top = 16, bottom = 40;

std::string axes(const Area& a, const Scale& x, const Scale& y,
                 const std::vector<double>& ticks_y) {
  std::string out;
  for (const double v : ticks_y) {
    out += fmt::format(
        "<line class=\"rule\" x1=\"{:g}\" x2=\"{:g}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text "
        "class=\"soft\" x=\"{:g}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
        left, width - right, y(v), y(v), left - 6, y(v) + 4, v);
  }
  constexpr std::size_t most_ticks = 8;
  for (const double v : ticks(x.from, x.to, most_ticks)) {
    if (v < x.from || v > x.to) continue;
    out += fmt::format(
        "<text class=\"soft\" x=\"{:.1f}\" y=\"{:g}\" text-anchor=\"middle\">{:g}</text>\n", x(v),
        height - bottom + 18, v);
  }
  return out +
         fmt::format(
             "<text class=\"soft\" x=\"{:g}\" y=\"{:g}\" text-anchor=\"middle\">{}</text><text "
             "class=\"soft\" transform=\"translate(14 {:g}) rotate(-90)\" "
             "text-anchor=\"middle\">{}</text>\n",
             (left + width) / 2, height - 6, escaped(a.x_label), (height - bottom) / 2,
             escaped(a.y_label));
}

// The layer between two curves of steps: a value holds until the next point.
std::string layer_path(const Area& a, const Scale& x, const Scale& y,
                       const std::vector<double>& low, const std::vector<double>& high) {
  std::string path;
  for (std::size_t i = 0; i < a.x.size(); ++i) {
    const double until = i + 1 < a.x.size() ? a.x[i + 1] : x.to;
    path += fmt::format("{}{:.1f} {:.1f}L{:.1f} {:.1f}", i == 0 ? "M" : "L", x(a.x[i]), y(high[i]),
                        x(until), y(high[i]));
  }
  for (std::size_t i = a.x.size(); i-- > 0;) {
    const double until = i + 1 < a.x.size() ? a.x[i + 1] : x.to;
    path += fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", x(until), y(low[i]), x(a.x[i]), y(low[i]));
  }
  return path + "Z";
}

}  // namespace

Html area(const Area& a) {
  if (a.x.size() < 2 || a.layers.empty()) return {};
  std::vector<double> high(a.x.size(), 0);
  for (const Area::Layer& layer : a.layers) {
    for (std::size_t i = 0; i < high.size(); ++i) high[i] += layer.y[i];
  }
  const double peak = std::ranges::max(high);
  // A limit far above would flatten the curve.
  const bool shows_limit = a.limit > 0 && a.limit < 2.5 * peak;
  const double most = std::max(peak, shows_limit ? a.limit : 0);
  if (!(most > 0) || !(a.x.back() > a.x.front())) return {};
  constexpr std::size_t most_ticks = 6;
  const std::vector<double> ticks_y = ticks(0, most, most_ticks);
  const Scale x{a.x.front(), a.x.back(), left, width - right};
  const Scale y{0, ticks_y.back(), height - bottom, top};
  std::string svg = open_svg(height, a.title, a.description) + axes(a, x, y, ticks_y);
  std::vector<double> low(a.x.size(), 0);
  std::vector<std::string> names;
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    high = low;
    for (std::size_t i = 0; i < high.size(); ++i) high[i] += a.layers[l].y[i];
    svg += fmt::format("<path d=\"{}\" fill=\"var(--c{})\"><title>{}</title></path>\n",
                       layer_path(a, x, y, low, high), l % colors, escaped(a.layers[l].name));
    names.push_back(a.layers[l].name);
    low = high;
  }
  if (shows_limit) {
    svg += fmt::format(
        "<line class=\"limit\" x1=\"{:g}\" x2=\"{:g}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text "
        "x=\"{:g}\" "
        "y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        left, width - right, y(a.limit), y(a.limit), width - right, y(a.limit) - 5,
        escaped(a.limit_label));
  }
  return {figure(a.title, legend(names) + svg + "</svg>\n")};
}

Html bars(const Bars& b) {
  if (b.bars.empty()) return {};
  constexpr double row = 26, names = 200, values = 110;
  double most = b.most;
  for (const Bars::Bar& bar : b.bars) most = std::max(most, bar.value);
  if (!(most > 0)) return {};
  const double h = row * static_cast<double>(b.bars.size()) + 8, room = width - names - values;
  std::string svg = open_svg(h, b.title, b.description);
  double y = 4;
  for (const Bars::Bar& bar : b.bars) {
    svg += fmt::format(
        "<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"end\">{}</text><rect x=\"{:g}\" y=\"{:g}\" "
        "width=\"{:.1f}\" "
        "height=\"16\" fill=\"var(--c4)\"/>",
        names - 8, y + 14, escaped(bar.name), names, y + 2, bar.value / most * room);
    if (bar.second > 0) {
      svg += fmt::format(
          "<rect x=\"{:g}\" y=\"{:g}\" width=\"{:.1f}\" height=\"16\" fill=\"var(--c0)\"/>", names,
          y + 2, bar.second / most * room);
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:g}\">{}</text>\n",
                       names + bar.value / most * room + 6, y + 14, escaped(bar.value_text));
    y += row;
  }
  return {figure(b.title, svg + "</svg>\n")};
}

Html picture(const Chart& chart) {
  constexpr std::string_view plain = "-_.~/:;=,() ";
  std::string data;
  for (const char c : to_svg(chart)) {
    const auto code = static_cast<unsigned>(static_cast<unsigned char>(c));
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    data += is_word || plain.find(c) != std::string_view::npos ? std::string(1, c)
                                                               : fmt::format("%{:02X}", code);
  }
  return {fmt::format(
      "<figure><img class=\"picture\" alt=\"{}\" src=\"data:image/svg+xml,{}\"/></figure>\n",
      escaped(chart.title + ". " + chart.description), data)};
}

namespace {

// Within <script type="application/json">: a string that cannot end the element.
std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned>(static_cast<unsigned char>(c));
    if (c == '"' || c == '\\' || c == '<' || code < 0x20) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string lanes_json(const Lanes& all) {
  std::string out = fmt::format("{{\"from\":{:.9g},\"to\":{:.9g},\"names\":[", all.from, all.to);
  for (std::size_t i = 0; i < all.names.size(); ++i) {
    out += (i > 0 ? "," : "") + json_text(all.names[i]);
  }
  out += "],\"lanes\":[";
  for (std::size_t l = 0; l < all.lanes.size(); ++l) {
    out += (l > 0 ? ",{\"name\":" : "{\"name\":") + json_text(all.lanes[l].name) + ",\"boxes\":[";
    bool is_first = true;
    for (const Lanes::Box& b : all.lanes[l].boxes) {
      out += fmt::format("{}[{:.9g},{:.9g},{},{}]", is_first ? "" : ",", b.from, b.to, b.name,
                         b.color);
      is_first = false;
    }
    out += "]}";
  }
  return out + "]}";
}

Table lanes_table(const Lanes& all) {
  Table table{.header = {"lane", "tasks", "busy"}, .rows = {}, .align = {}};
  for (const Lanes::Lane& lane : all.lanes) {
    double busy = 0;
    for (const Lanes::Box& b : lane.boxes) busy += b.to - b.from;
    table.rows.push_back({lane.name, fmt::format("{}", lane.boxes.size()),
                          fmt::format("{:.0f} %", 100 * busy / (all.to - all.from))});
  }
  return table;
}

}  // namespace

Html lanes(const Lanes& all) {
  if (all.lanes.empty() || !(all.to > all.from)) return {};
  std::string out =
      "<div class=\"lanes\"><p>" + escaped(all.description) +
      " Drag to move, wheel with Ctrl to zoom; with the keyboard: arrows, + and -, 0 for all.</p>\n"
      "<div class=\"tools\"><button value=\"in\">Zoom in</button><button value=\"out\">Zoom "
      "out</button>"
      "<button value=\"left\">Earlier</button><button value=\"right\">Later</button><button "
      "value=\"all\">All</button></div>\n";
  out += fmt::format(
      "<canvas tabindex=\"0\" role=\"img\" aria-label=\"{}\"></canvas><output "
      "aria-live=\"polite\"></output>\n<script "
      "type=\"application/json\">{}</script></div>\n",
      escaped(all.title + "; the table below says it in numbers"), lanes_json(all));
  return {out + details("The lanes as a table", table(lanes_table(all), all.title)).text};
}

}  // namespace tidegate::page
