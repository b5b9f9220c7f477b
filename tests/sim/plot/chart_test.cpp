#include "sim/plot/chart.hpp"

#include <algorithm>
#include <string_view>

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

using Values = std::vector<double>;

// Every element is closed in order and every attribute is quoted; enough for what we write.
bool is_well_formed(std::string_view text) {
  std::vector<std::string_view> open;
  while (true) {
    const std::size_t at = text.find('<');
    if (text.substr(0, at).find('>') != std::string_view::npos) return false;
    if (at == std::string_view::npos) return open.empty();
    const std::size_t end = text.find('>', at);
    if (end == std::string_view::npos) return false;
    std::string_view tag = text.substr(at + 1, end - at - 1);
    text.remove_prefix(end + 1);
    if (tag.find('<') != std::string_view::npos) return false;
    if (std::ranges::count(tag, '"') % 2 != 0 ||
        std::ranges::count(tag, '=') * 2 > std::ranges::count(tag, '"'))
      return false;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
    ++n;
  return n;
}

Chart two_series() {
  return {.title = "A & B <1>",
          .subtitle = "sub",
          .description = "in words",
          .x_label = "size (GiB)",
          .y_label = "rate (TFLOP/s)",
          .note = "note",
          .series = {{"keep", {{1, 100, "1", "keep one", false}, {2, 120, "2", "keep two", true}}},
                     {"other", {{1.5, 110, "1", "other \"one\"", false}}}},
          .limit = Chart::Line{1.8, "room"}};
}

}  // namespace

TEST_CASE("ticks are one, two or five times a power of ten", "[plot]") {
  CHECK(ticks(0, 47, 10) == Values{0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50});
  CHECK(ticks(110, 150, 8) == Values{110, 115, 120, 125, 130, 135, 140, 145, 150});
  CHECK(ticks(0, 7, 4) == Values{0, 2, 4, 6, 8});
  CHECK(ticks(0, 3000, 3) == Values{0, 1000, 2000, 3000});
  CHECK(ticks(0, 0.5, 5).back() == Approx(0.5));
  CHECK(ticks(0, 0.5, 5).size() == 6);
}

TEST_CASE("an axis starts at zero unless all points lie above half of the largest", "[plot]") {
  CHECK(axis_ticks(0, 10, 5) == Values{0, 2, 4, 6, 8, 10});
  CHECK(axis_ticks(5, 10, 5).front() == 0);
  CHECK(axis_ticks(8, 10, 5).front() == 8);
  // Points of one value, and no points at all, still have an axis.
  CHECK(axis_ticks(10, 10, 5).front() == 0);
  CHECK(axis_ticks(0, 0, 5) == Values{0, 1});
}

TEST_CASE("a chart is one well-formed picture that refers to nothing", "[plot]") {
  CHECK(is_well_formed("<a b=\"1\"><c/>text</a>"));
  CHECK(!is_well_formed("<a><b></a></b>"));
  CHECK(!is_well_formed("<a b=1></a>"));
  const std::string svg = to_svg(two_series());
  CHECK(is_well_formed(svg));
  CHECK(count(svg, "http") == 1);  // the name space of SVG
  CHECK(count(svg, "href") + count(svg, "url(") + count(svg, "@import") == 0);
  CHECK_THAT(svg,
             Containing("role=\"img\"") && Containing("<desc id=\"chart-description\">in words"));
  CHECK_THAT(svg, Containing("prefers-color-scheme:dark"));
}

TEST_CASE("every point of every series is drawn, and what does not hold is hollow", "[plot]") {
  const std::string svg = to_svg(two_series());
  // One title is the picture's; three are those of the points.
  CHECK(count(svg, "<title>") == 3);
  for (const char* text : {"<title>keep one</title>", "<title>keep two</title>",
                           "<title>other &quot;one&quot;</title>", ">keep<", ">other<",
                           "A &amp; B &lt;1&gt;", ">size (GiB)<", ">rate (TFLOP/s)<", ">room<"}) {
    INFO(text);
    CHECK(count(svg, text) >= 1);
  }
  CHECK(count(svg, " hollow\"") == 1);
  CHECK(count(svg, " unfit\"") == 1);
  // Across 0, 0.2, … 2 from 70 to 728: 1 lies at 70 + 658 / 2 = 399. Up, 100 is the axis, at 412.
  CHECK_THAT(svg, Containing("cx=\"399.0\" cy=\"412.0\""));
}

TEST_CASE("a chart without points is still a picture", "[plot]") {
  CHECK(is_well_formed(to_svg({.title = "none"})));
  CHECK(is_well_formed(to_svg({.title = "none", .series = {{"empty", {}}}})));
}
