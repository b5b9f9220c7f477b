#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include <unistd.h>

#include "sim/page/report_page.hpp"
#include "sim/run/predict.hpp"
#include "tests/catch.hpp"

/// The page in a real browser: its script runs, draws and answers keys. Needs chromium; without it
/// the test says so and passes nothing.

using namespace tidegate;
namespace fs = std::filesystem;

TEST_CASE("a browser runs the page's script: the timeline is drawn and zooms by key", "[browser]") {
  if (std::system("command -v chromium >/dev/null") != 0) {
    WARN("SKIPPED: chromium is not installed");
    return;
  }
  Scenario scenario = load_scenario(std::string(TIDEGATE_SOURCE_DIR) +
                                    "/scenarios/llama2_7b_zero_offload_4090.yaml");
  const Prediction p = predict(scenario);
  std::string html = page::to_html(page::report_page(p.report, p.plan, p.timeline));
  // What a reader does: zoom in by key, then a dump of the page as it is afterwards.
  const std::string keys =
      "<script>addEventListener('load',()=>{const c=document.querySelector('canvas');"
      "c.dispatchEvent(new KeyboardEvent('keydown',{key:'+'}));"
      "const g=c.getContext('2d').getImageData(0,0,c.width,c.height).data;let n=0;"
      "for(let i=3;i<g.length;i+=4)if(g[i])n++;document.title='drawn '+(n>1000)+' '+"
      "document.querySelector('output').textContent})</script></body>";
  html.replace(html.rfind("</body>"), 7, keys);
  const fs::path folder = fs::temp_directory_path() / ("tidegate-page-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path file = folder / "page.html";
  std::ofstream(file) << html;
  const std::string command =
      "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=" +
      (folder / "profile").string() + " --virtual-time-budget=3000 --dump-dom file://" +
      file.string() + " 2>/dev/null > " + (folder / "dom.html").string();
  const int code = std::system(command.c_str());
  std::ifstream dom_file(folder / "dom.html");
  const std::string dom((std::istreambuf_iterator<char>(dom_file)), {});
  fs::remove_all(folder);
  CHECK(code == 0);
  CHECK(dom.find("<title>drawn true showing ") != std::string::npos);
}
