#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/page/page.hpp"
#include "sim/page/report_page.hpp"
#include "sim/run/predict.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::page;

namespace {

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// Every element that is opened is closed, in order; what stands in scripts and styles is skipped.
bool is_balanced(const std::string& html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (html[at + 1] == '!' || end == std::string::npos) continue;
    const bool closes = html[at + 1] == '/';
    const std::size_t from = at + (closes ? 2 : 1);
    const std::string name = html.substr(from, html.find_first_of(" >/", from) - from);
    if (closes) {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (name != "meta" && html[end - 1] != '/') {
      open.push_back(name);
      if (name == "script" || name == "style") at = html.find("</" + name, end) - 1;
    }
  }
  return open.empty();
}

Lanes two_boxes() {
  return {.title = "t",
          .description = "d",
          .names = {"read", "</script><b>"},
          .lanes = {{"gpu", {{0, 1, 0, 0}, {2, 4, 1, 1}}}},
          .from = 0,
          .to = 4};
}

}  // namespace

TEST_CASE("text never becomes markup", "[page]") {
  CHECK(escaped("<b a=\"1\">&'") == "&lt;b a=&quot;1&quot;&gt;&amp;&#39;");
  const Table t{.header = {"<i>"}, .rows = {{"<u>", "a & b"}}, .align = {}};
  const std::string html = table(t, "<s>").text;
  for (const char* markup : {"<i>", "<u>", "<s>", "a & b"}) CHECK(count(html, markup) == 0);
}

TEST_CASE("tables name their columns and rows for screen readers", "[page]") {
  const Table t{
      .header = {"phase", "time"}, .rows = {{"forward", "1 s"}, {"  inner", "2 s"}}, .align = {}};
  const std::string html = table(t, "Phases").text;
  CHECK(count(html, "<th scope=\"col\"") == 2);
  CHECK(count(html, "<th scope=\"row\"") == 2);
  CHECK(count(html, "<caption>Phases</caption>") == 1);
  CHECK(table(Table{.header = {"a"}, .rows = {}, .align = {}}, "empty").text.empty());
}

TEST_CASE("points lie where their logarithms say, curves as a line of the same colour", "[page]") {
  // x from 1 to 100: ticks 1, 2, 5 … 100, so 1 at 84, 10 in the middle, (84 + 880)/2 = 482, 100 at
  // 880. y from 10 to 1000: 1000 at 16, 10 at 360 - 44 = 316, 100 between, at 166.
  const Curves c{.title = "t",
                 .description = "d",
                 .x_label = "size",
                 .y_label = "rate",
                 .series = {{"a <b>", {{1, 10, "first"}, {10, 100, ""}}, {{1, 10}, {100, 1000}}}},
                 .x_is_log = true,
                 .y_is_log = true};
  const std::string html = curves(c).text;
  CHECK(is_balanced(html));
  CHECK(count(html, "<circle cx=\"84.0\" cy=\"316.0\"") == 1);
  CHECK(count(html, "<circle cx=\"482.0\" cy=\"166.0\"") == 1);
  CHECK(count(html, "d=\"M84.0 316.0L880.0 16.0\"") == 1);
  CHECK(count(html, "<title>first</title>") == 1);
  CHECK(count(html, "a &lt;b&gt;") == 1);
  CHECK(curves(Curves{.title = "none", .series = {{"empty", {}, {}}}}).text.empty());
}

TEST_CASE("an axis of errors has both signs", "[page]") {
  // -10 to 10 %: y = 316 and 16; 0 at 166.
  const Curves c{.title = "t", .series = {{"", {{1, -10, ""}, {2, 0, ""}, {3, 10, ""}}, {}}}};
  const std::string html = curves(c).text;
  CHECK(count(html, "cy=\"316.0\"") == 1);
  CHECK(count(html, "cy=\"166.0\"") == 1);
  CHECK(count(html, "cy=\"16.0\"") == 1);
}

TEST_CASE("stacked areas end at the sum of their layers", "[page]") {
  // Axis 0 to 4: y = 260 at 0 and 16 at 4. Layers 1 + 1 reach 2, that is y = 138; the lower ends at
  // 1, y = 199.
  const Area a{.title = "t",
               .description = "",
               .x_label = "",
               .y_label = "",
               .x = {0, 1},
               .layers = {{"low", {1, 1}}, {"high", {1, 3}}}};
  const std::string svg = area(a).text;
  CHECK(svg.find("M70.0 199.0L") != std::string::npos);
  CHECK(svg.find("M70.0 138.0L") != std::string::npos);
  CHECK(svg.find(">low</li>") != std::string::npos);
}

TEST_CASE("a limit far above the curve is left out, one nearby is drawn", "[page]") {
  Area a{.title = "t",
         .description = "",
         .x_label = "",
         .y_label = "",
         .x = {0, 1},
         .layers = {{"x", {1, 1}}},
         .limit = 2,
         .limit_label = "capacity"};
  CHECK(area(a).text.find("class=\"limit\"") != std::string::npos);
  a.limit = 100;
  CHECK(area(a).text.find("class=\"limit\"") == std::string::npos);
}

TEST_CASE("lanes carry their boxes as data that names cannot break out of", "[page]") {
  const std::string html = lanes(two_boxes()).text;
  const std::string begin = "application/json\">";
  const std::size_t from = html.find(begin) + begin.size(), to = html.find("</script>", from);
  const auto data = nlohmann::json::parse(html.substr(from, to - from));
  CHECK(data["names"][1] == "</script><b>");
  CHECK(data["lanes"][0]["boxes"][1][0] == 2);
  CHECK(data["lanes"][0]["boxes"][1][1] == 4);
  // Busy 3 of 4 seconds.
  CHECK(html.find("75 %") != std::string::npos);
}

TEST_CASE("a report's page is whole, refers to nothing outside, and says what the text says",
          "[page]") {
  Scenario scenario = load_scenario(std::string(TIDEGATE_SOURCE_DIR) +
                                    "/scenarios/llama2_7b_zero_offload_4090.yaml");
  const Prediction p = predict(scenario);
  const std::string html = to_html(report_page(p.report, p.plan, p.timeline));
  CHECK(is_balanced(html));
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("}) {
    INFO(outside);
    CHECK(count(html, outside) == 0);
  }
  CHECK(count(html, to_text(p.report.iteration_time)) > 0);
  for (const Report::Pool& pool : p.report.pools) CHECK(count(html, pool.name) > 0);
  for (const std::string& line : p.report.facts.assumptions) {
    CHECK(count(html, escaped(line.substr(0, line.find(" = ")))) > 0);
  }
  // Every link of the navigation has its target.
  const std::string link = "href=\"#";
  for (std::size_t at = html.find(link); at != std::string::npos; at = html.find(link, at + 1)) {
    const std::size_t from = at + link.size();
    const std::string target = html.substr(from, html.find('"', from) - from);
    CHECK(count(html, "id=\"" + target + "\"") == 1);
  }
  CHECK(count(html, "<svg") == count(html, "role=\"img\" aria-label=") - count(html, "<canvas"));
}

TEST_CASE("a lane with too many tasks keeps its busy time within its gaps", "[page]") {
  Scenario scenario = load_scenario(std::string(TIDEGATE_SOURCE_DIR) +
                                    "/scenarios/llama2_7b_zero_offload_4090.yaml");
  const Prediction p = predict(scenario);
  const Lanes all = lanes_of(p.plan, p.timeline), few = lanes_of(p.plan, p.timeline, 10);
  REQUIRE(all.lanes.size() == few.lanes.size());
  for (std::size_t l = 0; l < all.lanes.size(); ++l) {
    CHECK(few.lanes[l].boxes.size() <= 10);
    CHECK(few.lanes[l].boxes.front().from == all.lanes[l].boxes.front().from);
    double end = 0, few_end = 0;
    for (const Lanes::Box& b : all.lanes[l].boxes) end = std::max(end, b.to);
    for (const Lanes::Box& b : few.lanes[l].boxes) few_end = std::max(few_end, b.to);
    CHECK(few_end == end);
  }
}
