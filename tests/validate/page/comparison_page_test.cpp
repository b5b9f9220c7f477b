// Pages of predictions beside measurements: what stands in them, and that a browser draws them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/engine/simulate.hpp"
#include "sim/run/predict.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"
#include "validate/page/comparison_page.hpp"

using namespace tidegate;
using tidegate::test::TemporaryFolder;

namespace {

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// A prediction against the same plan in virtual time with a drive that writes at half the rate.
std::string page_of_slow_writes() {
  Scenario scenario =
      load_scenario(std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/ssdtrain_paced.yaml");
  const Prediction p = predict(scenario);
  std::vector<Demand> slow = p.demands;
  for (std::size_t w = 0; w < slow.size(); ++w) {
    const auto* io = std::get_if<FileIo>(&p.plan.works[w]);
    if (io != nullptr && io->direction == Direction::write) slow[w].alone *= 2;
  }
  const Timeline measured = simulate(p.plan, slow, p.resources);
  CompareOptions options;
  options.interval =
      PredictionInterval{p.report.iteration_time * 0.9, p.report.iteration_time * 1.1};
  const Comparison c = compare(p.plan, p.timeline, measured, p.demands, p.resources, options);
  return page::to_html(
      page::comparison_page("ssd <train>", "paced_rig", p.plan, p.timeline, measured, c));
}

}  // namespace

TEST_CASE("a comparison's page shows both runs of everything", "[page]") {
  const std::string html = page_of_slow_writes();
  for (const char* section :
       {"Suspects", "Phases", "Tasks", "Critical paths", "Memory", "Timelines", "Order"}) {
    INFO(section);
    CHECK(count(html, std::string(">") + section + "</h2>") == 1);
  }
  CHECK(count(html, "<canvas") == 2);  // lanes of the prediction and of the measurement
  CHECK(count(html, "gpu0: predicted</figcaption>") == 1);
  CHECK(count(html, "gpu0: measured</figcaption>") == 1);
  CHECK(html.find("gpu0: predicted</figcaption>") < html.find("gpu0: measured</figcaption>"));
  CHECK(count(html, "nine in ten within") == 1);
  CHECK(count(html, "drive writes") > 0);  // the suspect
  CHECK(count(html, "ssd &lt;train&gt;") > 0);
  CHECK(count(html, "ssd <train>") == 0);
}

TEST_CASE("pages of suites list their cases and rates", "[page]") {
  Suite suite;
  suite.rows.resize(1);
  suite.rows[0].name = "keep, 1 rank";
  suite.rows[0].comparison.step = {Seconds(1.02), Seconds(1)};
  const std::string paced = page::to_html(page::suite_page(suite));
  CHECK(count(paced, "keep, 1 rank") >= 2);  // a bar and a row
  CHECK(count(paced, "+2.0 %") >= 2);

  NativeSuite native;
  native.first = {{"host", {{.key = "adam_rate", .text = "6e8", .source = "x"}}}};
  native.rows.resize(1);
  native.rows[0].name = "compute alone";
  native.rows[0].runs.resize(3, {.step = Seconds(1), .predicted = Seconds(0.9), .spoiled = {}});
  const std::string page = page::to_html(page::native_page(native));
  CHECK(count(page, "compute alone") >= 2);
  CHECK(count(page, "-10.0 %") >= 2);
  CHECK(count(page, "host.adam_rate") == 1);
}

TEST_CASE("a browser draws the lanes of both runs", "[browser]") {
  if (std::system("command -v chromium >/dev/null") != 0) {
    WARN("SKIPPED: chromium is not installed");
    return;
  }
  std::string html = page_of_slow_writes();
  const std::string asks =
      "<script>addEventListener('load',()=>{let all=0;for(const c of "
      "document.querySelectorAll('canvas')){const g=c.getContext('2d').getImageData(0,0,c.width,"
      "c.height).data;let n=0;for(let i=3;i<g.length;i+=4)if(g[i])n++;if(n>1000)all++}"
      "document.title='drawn '+all})</script></body>";
  html.replace(html.rfind("</body>"), 7, asks);
  const TemporaryFolder folder;
  const std::string file = folder.write("page.html", html);
  const std::string dom_file = (folder.path() / "dom.html").string();
  const std::string command =
      "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=" +
      (folder.path() / "profile").string() + " --virtual-time-budget=3000 --dump-dom file://" +
      file + " 2>/dev/null > " + dom_file;
  CHECK(std::system(command.c_str()) == 0);
  std::ifstream in(dom_file);
  const std::string dom((std::istreambuf_iterator<char>(in)), {});
  CHECK(dom.find("<title>drawn 2</title>") != std::string::npos);
}
