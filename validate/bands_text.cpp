#include "validate/bands_text.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/core.h>

#include "sim/report/table.hpp"
#include "sim/report/words.hpp"

namespace tidegate {
namespace {

std::string standing(const Band& band) {
  if (band.is_recalled) return "recalled";
  return band.is_gated ? "ok" : "shown";
}

std::string verdict(const Band& band) {
  std::string text = standing(band);
  if (!band.holds()) text = band.is_gated ? "MISSED" : text + "; outside";
  return text + (band.in_sample ? ", in sample" : "");
}

std::string number(double value) { return fmt::format("{:.4g}", value); }

std::string interval(double low, double high) {
  const std::string from = number(low), to = number(high);
  return from == to ? from : from + " to " + to;
}

// Bands of one name stand together.
std::vector<std::span<const Band>> groups(const Published& p) {
  std::vector<std::span<const Band>> list;
  const std::span<const Band> all(p.bands);
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i + 1;
    while (end < all.size() && all[end].group == all[i].group) ++end;
    list.push_back(all.subspan(i, end - i));
    i = end;
  }
  return list;
}

std::string group_verdict(std::span<const Band> bands) {
  const auto outside = std::ranges::count_if(bands, [](const Band& b) { return !b.holds(); });
  std::string text = standing(bands.front());
  if (outside > 0) {
    text = bands.front().is_gated ? fmt::format("{} MISSED", outside)
                                  : fmt::format("{}; {} outside", text, outside);
  }
  return text + (bands.front().in_sample ? ", in sample" : "");
}

}  // namespace

Table bands_table(const Published& p) {
  Table table{.header = {"band", "low", "high", "predicted", ""},
              .rows = {},
              .align = {Align::left, Align::right, Align::right, Align::right, Align::left}};
  for (const Band& band : p.bands) {
    table.rows.push_back(
        {band.name, number(band.low), number(band.high), number(band.value), verdict(band)});
  }
  return table;
}

std::vector<std::string> band_claims(const Published& p) {
  std::vector<std::string> claims;
  for (const std::span<const Band> group : groups(p)) {
    const Band& first = group.front();
    claims.push_back(fmt::format("{}: {} ({})", first.group, first.claim, first.source));
  }
  return claims;
}

std::string bands_text(const Published& p) {
  if (p.bands.empty()) return "";
  std::string text = p.band_title + "\n\n" + to_text(bands_table(p));
  for (const std::string& claim : band_claims(p)) text += "  " + wrap(claim, 96, 4) + "\n";
  return text;
}

std::string brief_bands_text(const Published& p) {
  if (p.bands.empty()) return "";
  Table table{.header = {"behaviour", "runs", "predicted", "band", ""},
              .rows = {},
              .align = {Align::left, Align::right, Align::right, Align::right, Align::left}};
  for (const std::span<const Band> group : groups(p)) {
    const auto [least, most] = std::ranges::minmax(group, {}, &Band::value);
    const double low = std::ranges::min(group, {}, &Band::low).low;
    const double high = std::ranges::max(group, {}, &Band::high).high;
    table.rows.push_back({group.front().claim, std::to_string(group.size()),
                          interval(least.value, most.value), interval(low, high),
                          group_verdict(group)});
  }
  return p.band_title + "\n\n" + to_text(table);
}

}  // namespace tidegate
