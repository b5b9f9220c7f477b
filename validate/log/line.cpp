#include "validate/log/line.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace tidegate {
namespace {

constexpr std::string_view timing_mark = "time (ms)";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Reads a number at the front of `text` and takes it off; nothing unless it is finite and >= 0.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::string shortened(std::string_view text) {
  constexpr std::size_t most = 24;
  text = trimmed(text);
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "...";
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  });
}

// Splits "name .... value" at its dots, of which there are at least two.
std::optional<std::pair<std::string_view, std::string_view>> at_dots(std::string_view text) {
  const std::size_t dots = text.find(" ..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view left = trimmed(text.substr(0, dots));
  const std::size_t space = left.find_last_of(" \t]");
  const std::string_view name = space == std::string_view::npos ? left : left.substr(space + 1);
  const std::size_t end = text.find_first_not_of('.', dots + 1);
  if (!is_name(name) || end == std::string_view::npos) return std::nullopt;
  return std::pair{name, trimmed(text.substr(end))};
}

}  // namespace

void LogLine::damage(std::size_t at, std::string_view key, std::string text) {
  damages_.push_back({static_cast<int>(at) + 1, std::string(key), std::move(text)});
}

std::optional<double> LogLine::number_after(std::string_view key) {
  const std::size_t at = text_.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t from = at + key.size();
  while (from < text_.size() && (text_[from] == ' ' || text_[from] == '\'' || text_[from] == '"'))
    ++from;
  std::string_view rest = text_.substr(from);
  const std::optional<double> value = take_number(rest);
  if (!value) {
    damage(from, trimmed(key),
           fmt::format("'{}' is not a number; the engine writes one here", shortened(rest)));
  }
  return value;
}

std::int32_t LogLine::rank() const {
  for (const std::string_view key : {"[Rank ", "rank="}) {
    const std::size_t at = text_.find(key);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = text_.substr(at + key.size());
    std::int32_t rank = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
    // Without a process group the engine prints rank -1.
    if (error == std::errc{}) return std::max(rank, 0);
  }
  return 0;
}

std::optional<NamedNumber> LogLine::timer(std::string_view field) {
  const std::size_t colon = field.find(':');
  if (colon == std::string_view::npos) {
    damage(static_cast<std::size_t>(trimmed(field).data() - text_.data()), timing_mark,
           fmt::format("'{}' has no number; name: milliseconds stands here", shortened(field)));
    return std::nullopt;
  }
  const std::string_view name = trimmed(field.substr(0, colon));
  const std::string_view written = trimmed(field.substr(colon + 1));
  std::string_view rest = written;
  const std::optional<double> value = take_number(rest);
  rest = trimmed(rest);
  if (!value || (!rest.empty() && rest != "GB")) {
    damage(static_cast<std::size_t>(written.data() - text_.data()), name,
           fmt::format("'{}' is not a number of milliseconds", shortened(written)));
    return std::nullopt;
  }
  return NamedNumber{std::string(name), *value};
}

std::vector<NamedNumber> LogLine::timers() {
  std::vector<NamedNumber> found;
  const std::size_t start = text_.find(timing_mark);
  if (start == std::string_view::npos) return found;
  const std::size_t end = std::min(text_.find('\r', start), text_.size());
  std::size_t bar = text_.find('|', start);
  while (bar < end) {
    const std::size_t next = std::min(text_.find('|', bar + 1), end);
    const std::string_view field = text_.substr(bar + 1, next - bar - 1);
    const bool is_last_and_empty = next == end && trimmed(field).empty();
    if (!is_last_and_empty) {
      if (auto read = timer(field)) found.push_back(std::move(*read));
    }
    bar = next;
  }
  return found;
}

std::optional<NamedNumber> LogLine::dotted_timer() {
  const auto parts = at_dots(text_);
  if (!parts || !parts->second.starts_with(": (")) return std::nullopt;
  const auto at = static_cast<std::size_t>(parts->second.data() - text_.data());
  std::string_view rest = parts->second.substr(3);
  const std::optional<double> least = take_number(rest);
  if (least && rest.starts_with(", ")) {
    rest.remove_prefix(2);
    const std::optional<double> most = take_number(rest);
    if (most && rest.starts_with(")")) return NamedNumber{std::string(parts->first), *most};
  }
  damage(at, parts->first,
         fmt::format("'{}' is not a pair (least, most) of milliseconds", shortened(parts->second)));
  return std::nullopt;
}

std::optional<NamedText> LogLine::setting() const {
  const auto parts = at_dots(text_);
  if (!parts || parts->second.empty() || parts->second.starts_with(':')) return std::nullopt;
  return NamedText{std::string(parts->first), std::string(parts->second)};
}

}  // namespace tidegate
