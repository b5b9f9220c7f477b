#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "calib/profile/diff.hpp"

namespace tidegate::calib {
namespace {

using Json = nlohmann::ordered_json;

std::string shortened(const std::string& text) {
  return text.size() <= 24 ? text : text.substr(0, 21) + "...";
}

std::string change_line(const Diff::Change& c) {
  return fmt::format("  {:<34} {:>14} -> {:<14} {:+7.1f} %  noise {:4.1f} %  p {:.2g}\n", c.key,
                     shortened(c.before), shortened(c.after), 100 * (c.ratio - 1),
                     100 * c.uncertainty, c.p);
}

std::string key_lines(const char* title, const std::vector<std::string>& keys) {
  if (keys.empty()) return "";
  std::string text = fmt::format("\n{}\n", title);
  for (const std::string& key : keys) text += "  " + key + "\n";
  return text;
}

}  // namespace

std::string to_text(const Diff& diff) {
  std::string text = fmt::format("{} -> {}: {} of {} values changed beyond noise\n", diff.before,
                                 diff.after, diff.beyond_noise(), diff.changes.size());
  std::string beyond, within;
  for (const Diff::Change& c : diff.changes)
    (c.is_beyond_noise() ? beyond : within) += change_line(c);
  if (!beyond.empty()) text += "\nchanged beyond noise (95 %, Holm)\n" + beyond;
  if (!within.empty()) text += "\nwithin noise\n" + within;
  if (!diff.untested.empty()) text += "\ndiffer, noise not told in both\n";
  for (const Diff::Untested& u : diff.untested) {
    text += fmt::format("  {:<34} {:>14} -> {}\n", u.key, shortened(u.before), shortened(u.after));
  }
  text += key_lines(("only in " + diff.before).c_str(), diff.only_before);
  text += key_lines(("only in " + diff.after).c_str(), diff.only_after);
  if (diff.equal > 0) text += fmt::format("\n{} values without noise are equal\n", diff.equal);
  return text;
}

std::string to_json(const Diff& diff) {
  Json changes = Json::array(), untested = Json::array();
  for (const Diff::Change& c : diff.changes) {
    changes.push_back({{"key", c.key},
                       {"before", c.before},
                       {"after", c.after},
                       {"ratio", c.ratio},
                       {"ratio_uncertainty", c.uncertainty},
                       {"freedom", std::isfinite(c.freedom) ? Json(c.freedom) : Json()},
                       {"p", c.p},
                       {"beyond_noise", c.is_beyond_noise()}});
  }
  for (const Diff::Untested& u : diff.untested) {
    untested.push_back({{"key", u.key}, {"before", u.before}, {"after", u.after}});
  }
  const Json json = {{"before", diff.before},
                     {"after", diff.after},
                     {"beyond_noise", diff.beyond_noise()},
                     {"changes", changes},
                     {"untested", untested},
                     {"equal", diff.equal},
                     {"only_before", diff.only_before},
                     {"only_after", diff.only_after}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tidegate::calib
