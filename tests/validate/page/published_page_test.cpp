// Pages of published figures and public reports: what stands where, and what is marked.
#include <string>

#include "tests/catch.hpp"
#include "validate/page/published_page.hpp"

using namespace tidegate;

namespace {

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// From one heading to the next.
std::string section(const std::string& html, const std::string& title) {
  const std::size_t from = html.find(">" + title + "</h2>");
  INFO(title);
  REQUIRE(from != std::string::npos);
  return html.substr(from, html.find("<h2", from) - from);
}

PublishedRow iteration(const char* name, double predicted, double measured, bool in_sample) {
  PublishedRow row;
  row.case_name = name, row.variant = "a", row.quantity = "iteration", row.unit = "s";
  row.predicted = predicted, row.measured = measured, row.in_sample = in_sample;
  row.gate = 0.08;
  return row;
}

// One row in sample, one out of sample within its gate, one that misses it by a fifth.
Published published() {
  Published p;
  p.sets = {{"set", "Runs of <somebody>", "a paper", "a_profile", ""}};
  p.rows = {iteration("fitted", 10, 10, true), iteration("near", 10.5, 10, false),
            iteration("far", 12, 10, false)};
  p.rows[1].profile_deviation = 0.1;
  p.coverage = {{"out of sample", 1, 1}};
  p.summary = {{"iterations, out of sample", 2, 0.125, 0.2, "far a"}};
  p.bands = {{.group = "g",
              .name = "g, one",
              .claim = "c",
              .source = "s",
              .low = 1,
              .high = 2,
              .value = 3,
              .is_gated = true}};
  p.band_title = "Bands";
  p.gated = 4, p.missed = 2;
  return p;
}

}  // namespace

TEST_CASE("a page of published figures has misses first and samples apart", "[page]") {
  const std::string html = page::to_html(page::published_page(published()));
  CHECK(count(html, "<!DOCTYPE html>") == 1);
  CHECK(count(html, "http") == count(html, "http://www.w3.org/"));  // refers to nothing outside
  const std::string missed = section(html, "Missed");
  CHECK(count(missed, "far, a") == 1);
  CHECK(count(missed, "+20.0 %") == 1);
  CHECK(count(missed, "g, one") == 1);
  CHECK(count(missed, "near") == 0);
  const std::string set = section(html, "Runs of &lt;somebody&gt;");
  const std::size_t in = set.find("In sample: these set values of the profile");
  REQUIRE(in != std::string::npos);
  CHECK(set.find("Out of sample") < in);
  CHECK(set.find("far") < in);
  CHECK(set.find("MISSED (gate 8 %)") < in);
  CHECK(set.find("fitted") > in);
  CHECK(count(html, "Error of each iteration time, out of sample") > 0);
  CHECK(html.find("Error of each iteration time, out of sample") <
        html.find("Error of each iteration time, in sample"));
  // e^(±1.645 · 0.1) · 10.5 = 8.907 to 12.38, which holds 10.
  CHECK(count(section(html, "Intervals"), "8.907 s to 12.38 s") == 1);
  CHECK(count(section(html, "Intervals"), "inside") > 0);
  CHECK(count(html, "2 of 4") > 0);
}

TEST_CASE("a page of public reports has complete rows apart from assumed ones", "[page]") {
  Field f;
  FieldRow far{.case_name = "report", .run = "one", .quantity = "gpu_used", .measure = ""};
  far.predicted = 20e9, far.observed = {10e9, 10e9}, far.is_complete = true, far.gate = 0.15;
  FieldRow assumed = far;
  assumed.case_name = "guessed", assumed.is_complete = false, assumed.gate.reset();
  FieldRow estimate = far;
  estimate.case_name = "formula", estimate.is_estimate = true, estimate.gate.reset();
  f.rows = {far, assumed, estimate};
  f.verdicts = {{.case_name = "report", .run = "one", .predicted = "fits", .observed = "host"}};
  f.gated = 1, f.missed = 1;
  const std::string html = page::to_html(page::field_page(f));
  const std::string rows = section(html, "Rows");
  CHECK(rows.find("report") < rows.find("Some inputs assumed"));
  CHECK(rows.find("Some inputs assumed") < rows.find("guessed"));
  CHECK(rows.find("guessed") < rows.find("Formulas and estimates"));
  CHECK(rows.find("Formulas and estimates") < rows.find("formula"));
  const std::string missed = section(html, "Missed");
  CHECK(count(missed, "+100.0 %") == 1);
  CHECK(count(missed, "host full") == 1);
  CHECK(count(missed, "guessed") == 0);
}
