#include "models/base/units.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>

namespace tidegate {
namespace {

struct Prefix {
  std::string_view text;
  double factor;
};
constexpr std::array prefixes = {
    Prefix{"Ki", 0x1p10}, Prefix{"Mi", 0x1p20}, Prefix{"Gi", 0x1p30}, Prefix{"Ti", 0x1p40},
    Prefix{"Pi", 0x1p50}, Prefix{"k", 1e3},     Prefix{"M", 1e6},     Prefix{"G", 1e9},
    Prefix{"T", 1e12},    Prefix{"P", 1e15},    Prefix{"E", 1e18},    Prefix{"Z", 1e21},
};
constexpr std::array time_units = {
    Prefix{"s", 1},     Prefix{"ms", 1e-3}, Prefix{"us", 1e-6},
    Prefix{"ns", 1e-9}, Prefix{"min", 60},  Prefix{"h", 3600},
};

// The factor of `unit` = prefix + stem, or 0 when it is something else.
double prefixed(std::string_view unit, std::string_view stem) {
  if (!unit.ends_with(stem)) return 0;
  const std::string_view prefix = unit.substr(0, unit.size() - stem.size());
  if (prefix.empty()) return 1;
  for (const auto& p : prefixes) {
    if (p.text == prefix) return p.factor;
  }
  return 0;
}

double factor_of(std::string_view unit, Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return prefixed(unit, "B");
    case Dimension::bytes_per_second:
      return prefixed(unit, "B/s");
    case Dimension::flops:
      return prefixed(unit, "FLOP");
    case Dimension::flops_per_second:
      return prefixed(unit, "FLOP/s");
    case Dimension::seconds:
      for (const auto& t : time_units) {
        if (t.text == unit) return t.factor;
      }
      return 0;
  }
  return 0;
}

std::string with_prefix(double v, double step, const std::array<const char*, 7>& units) {
  std::size_t i = 0;
  double scaled = std::abs(v);
  // 999.95 would print as "1000": move to the next prefix before rounding shows it.
  while (scaled >= 0.99995 * step && i + 1 < units.size()) scaled /= step, ++i;
  return fmt::format("{}{:.4g} {}", v < 0 ? "-" : "", scaled, units[i]);
}

}  // namespace

DimensionText describe(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return {"a size", "B kB MB GB TB PB KiB MiB GiB TiB PiB"};
    case Dimension::flops:
      return {"an amount of arithmetic", "FLOP kFLOP MFLOP GFLOP TFLOP PFLOP"};
    case Dimension::seconds:
      return {"a time", "s ms us ns min h"};
    case Dimension::bytes_per_second:
      return {"a bandwidth", "B/s kB/s MB/s GB/s TB/s KiB/s MiB/s GiB/s TiB/s"};
    case Dimension::flops_per_second:
      return {"an arithmetic rate", "FLOP/s GFLOP/s TFLOP/s PFLOP/s"};
  }
  return {"", ""};
}

bool parse_quantity(const std::string& text, Dimension dimension, double& base,
                    std::string& problem) {
  const auto [noun, units] = describe(dimension);
  const char* const end = text.data() + text.size();
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number)) {
    problem = fmt::format("'{}' is not {}; write a number and one of: {}", text, noun, units);
    return false;
  }
  const char* at = rest;
  while (at != end && *at == ' ') ++at;
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  if (unit.empty()) {
    problem = fmt::format("'{}' has no unit; write {} with one of: {}", text, noun, units);
    return false;
  }
  const double factor = factor_of(unit, dimension);
  if (factor == 0) {
    problem = fmt::format("'{}' is not {}: unit '{}' is not one of: {}", text, noun, unit, units);
    return false;
  }
  base = number * factor;
  return true;
}

std::string to_text(Bytes v) {
  return with_prefix(v.value(), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
}
std::string to_text(Flops v) {
  return with_prefix(v.value(), 1000,
                     {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"});
}
std::string to_text(BytesPerSecond v) {
  return with_prefix(v.value(), 1000, {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s", "EB/s"});
}
std::string to_text(FlopsPerSecond v) {
  return with_prefix(v.value(), 1000,
                     {"FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "EFLOP/s"});
}
std::string to_text(Seconds v) {
  const double s = std::abs(v.value());
  if (s == 0) return "0 s";
  if (s >= 0.99995) return fmt::format("{:.4g} s", v.value());
  if (s >= 0.99995e-3) return fmt::format("{:.4g} ms", v.value() * 1e3);
  if (s >= 0.99995e-6) return fmt::format("{:.4g} us", v.value() * 1e6);
  return fmt::format("{:.4g} ns", v.value() * 1e9);
}

}  // namespace tidegate
