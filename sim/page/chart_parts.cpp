#include "sim/page/chart_parts.hpp"

#include <fmt/core.h>

#include "sim/page/page.hpp"
#include "sim/page/style.hpp"

namespace tidegate::page {

std::string open_svg(double h, const std::string& title, const std::string& description) {
  return fmt::format(
      "<svg viewBox=\"0 0 {:g} {:g}\" width=\"{:g}\" height=\"{:g}\" role=\"img\" "
      "aria-label=\"{}\"><title>{}"
      "</title><desc>{}</desc>\n",
      chart_width, h, chart_width, h, escaped(title), escaped(title), escaped(description));
}

std::string legend(const std::vector<std::string>& names) {
  std::string out = "<ul class=\"legend\">";
  for (std::size_t i = 0; i < names.size(); ++i) {
    out += fmt::format("<li><i style=\"background:var(--c{})\"></i>{}</li>", i % colors,
                       escaped(names[i]));
  }
  return out + "</ul>\n";
}

std::string figure(const std::string& title, const std::string& inner) {
  return "<figure><figcaption>" + escaped(title) + "</figcaption>\n" + inner + "</figure>\n";
}

}  // namespace tidegate::page
