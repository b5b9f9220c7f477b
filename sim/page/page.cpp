#include "sim/page/page.hpp"

#include <fmt/core.h>

#include "sim/page/style.hpp"

namespace tidegate::page {
namespace {

std::string cell(const char* tag, const std::string& attributes, const std::string& text) {
  return fmt::format("<{}{}>{}</{}>", tag, attributes, escaped(text), tag);
}

std::string slug(const std::string& title) {
  std::string id;
  for (const char c : title) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) id += c;
    if (c >= 'A' && c <= 'Z') id += static_cast<char>(c - 'A' + 'a');
    if (c == ' ' && !id.empty() && id.back() != '-') id += '-';
  }
  return id;
}

bool is_right(const Table& table, std::size_t column) {
  if (column < table.align.size()) return table.align[column] == Align::right;
  return column > 0;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Html paragraphs(const std::string& text) {
  Html html;
  std::string line;
  for (const char c : text + "\n") {
    if (c != '\n') {
      line += c;
    } else if (!line.empty()) {
      html.text += "<p>" + escaped(line) + "</p>\n";
      line.clear();
    }
  }
  return html;
}

Html preformatted(const std::string& text) { return {"<pre>" + escaped(text) + "</pre>\n"}; }

Html table(const Table& table, const std::string& caption) {
  if (table.rows.empty()) return {};
  std::string out = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                    escaped(caption) + "\"><table><caption>" + escaped(caption) + "</caption>\n";
  if (!table.header.empty()) {
    out += "<thead><tr>";
    for (std::size_t c = 0; c < table.header.size(); ++c) {
      out += cell("th", is_right(table, c) ? " scope=\"col\" class=\"number\"" : " scope=\"col\"",
                  table.header[c]);
    }
    out += "</tr></thead>\n";
  }
  out += "<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c == 0) {
        // Rows that belong to the one above are set in.
        out += cell("th",
                    row[0].starts_with("  ") ? " scope=\"row\" class=\"inner\"" : " scope=\"row\"",
                    row[0]);
      } else {
        out += cell("td", is_right(table, c) ? " class=\"number\"" : "", row[c]);
      }
    }
    out += "</tr>\n";
  }
  return {out + "</tbody></table></div>\n"};
}

Html list(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string out = "<ul>\n";
  for (const std::string& line : lines) out += "<li>" + escaped(line) + "</li>\n";
  return {out + "</ul>\n"};
}

Html figures(const std::vector<Figure>& all) {
  std::string out = "<dl class=\"figures\">\n";
  for (const Figure& f : all) {
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd>{}</div>\n", escaped(f.name), escaped(f.value),
                       f.note.empty() ? "" : "<dd class=\"note\">" + escaped(f.note) + "</dd>");
  }
  return {out + "</dl>\n"};
}

Html details(const std::string& summary, const Html& body) {
  if (body.text.empty()) return {};
  return {"<details><summary>" + escaped(summary) + "</summary>\n" + body.text + "</details>\n"};
}

std::string to_html(const Page& page) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n"
      "<body>\n<a class=\"skip\" href=\"#summary\">To the summary</a>\n<header><h1>{}</h1>\n<p "
      "class=\"subtitle\">{}</p></header>\n",
      escaped(page.title), style, escaped(page.title), escaped(page.subtitle));
  out += "<nav aria-label=\"Sections\"><ul>\n<li><a href=\"#summary\">Summary</a></li>\n";
  for (const Section& s : page.sections) {
    if (s.body.text.empty()) continue;
    out += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", slug(s.title), escaped(s.title));
  }
  out +=
      "</ul></nav>\n<main>\n<section id=\"summary\" aria-labelledby=\"summary-title\"><h2 "
      "id=\"summary-title\">Summary</h2>\n" +
      page.summary.text + "</section>\n";
  for (const Section& s : page.sections) {
    if (s.body.text.empty()) continue;
    const std::string id = slug(s.title);
    out += fmt::format(
        "<section id=\"{}\" aria-labelledby=\"{}-title\"><h2 "
        "id=\"{}-title\">{}</h2>\n{}</section>\n",
        id, id, id, escaped(s.title), s.body.text);
  }
  return out + "</main>\n<footer>" + escaped(page.footer) + "</footer>\n<script>\n" + script +
         "</script>\n</body>\n</html>\n";
}

}  // namespace tidegate::page
