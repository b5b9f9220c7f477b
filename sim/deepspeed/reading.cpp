#include "sim/deepspeed/reading.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "sim/deepspeed/known_keys.hpp"

namespace tidegate {
namespace {

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// A value that says as much as leaving the key out.
bool is_off(std::string_view key, const yaml::Value& value) {
  constexpr std::array<std::string_view, 6> off = {"false", "False", "0", "-1", "auto", "none"};
  if (value.kind == yaml::Value::Kind::null) return true;
  if (value.kind == yaml::Value::Kind::scalar) {
    return contains(off, value.text) || (key == "zero_hpz_partition_size" && value.text == "1");
  }
  const yaml::Value* enabled = value.find("enabled");
  return value.entries.empty() && value.items.empty() ? true : enabled && is_off("", *enabled);
}

bool is_on(const yaml::Value& value) {
  return value.text == "true" || value.text == "True" || value.text == "1" || value.text == "auto";
}

std::string unknown_text(const std::string& key, const KnownKeys& known) {
  std::vector<std::string> words;
  for (const auto& group : {known.read, known.harmless, known.simulated_on, known.not_simulated})
    words.insert(words.end(), group.begin(), group.end());
  const std::string near = nearest(key, words);
  const std::string hint = near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
  return (known.is_strict ? "unknown key, at which DeepSpeed stops"
                          : "unknown key, which DeepSpeed never looks at") +
         hint;
}

}  // namespace

bool is_auto(const yaml::Node& node) { return node.is_scalar() && node.value().text == "auto"; }

bool flag_of(yaml::Map& map, const char* key, bool fallback) {
  const auto node = map.find(key);
  return node && !is_auto(*node) ? node->flag() : fallback;
}

std::string flag_text(bool value) { return value ? "true" : "false"; }

yaml::Node Reading::section_of(const std::optional<yaml::Node>& node, const yaml::Node& beside,
                               const char* path) const {
  if (node && node->is_map()) return *node;
  return yaml::Node(beside.document(), &nothing, path);
}

void Reading::remark(RemarkKind kind, const yaml::Node& node, const std::string& text) {
  add_remark(run.remarks, {kind, node.where(), node.path(), text});
}

void Reading::put(const std::string& key, const std::string& text, const Where& where) {
  yaml::set(run.policy, key, text, where);
}

std::int64_t Reading::elements(const yaml::Node& node, std::int64_t least) {
  const yaml::Value& value = node.value();
  const bool has_only_digits =
      std::ranges::all_of(value.text, [](char c) { return c >= '0' && c <= '9'; });
  if (value.quoted && !has_only_digits) {
    remark(RemarkKind::refused, node,
           "a number in quotes that DeepSpeed does not read as one; leave the quotes out");
  }
  return node.count(least);
}

void Reading::look_over(const yaml::Node& node, std::string_view section) {
  const KnownKeys& known = known_keys(section);
  for (const yaml::Entry& entry : node.value().entries) {
    const std::string path = node.path().empty() ? entry.key : node.path() + "." + entry.key;
    const auto say = [&](RemarkKind kind, const std::string& text) {
      add_remark(run.remarks, {kind, entry.where, path, text});
    };
    if (contains(known.read, entry.key) || contains(known.harmless, entry.key)) continue;
    if (contains(known.simulated_on, entry.key)) {
      if (!is_on(entry.value)) say(RemarkKind::not_simulated, "predicted as if it were true");
    } else if (contains(known.not_simulated, entry.key)) {
      if (!is_off(entry.key, entry.value))
        say(RemarkKind::not_simulated, "predicted as if it were not there");
    } else {
      say(known.is_strict ? RemarkKind::refused : RemarkKind::ignored,
          unknown_text(entry.key, known));
    }
  }
}

}  // namespace tidegate
