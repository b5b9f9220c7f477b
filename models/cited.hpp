#pragma once

#include <string>
#include <vector>

#include "models/base/yaml.hpp"
#include "models/curve.hpp"
#include "models/machine.hpp"

/// Reading values that say where they come from.
///
///   key: {value: 24.6 GB/s, source: "calib copy, 2026-08-01", uncertainty: 5 %}
///   key: {value: 24.6 GB/s, assumed: "typical of PCIe 4.0 x16"}
///   key: {points: [[1 GFLOP, 0.3], [1 TFLOP, 0.45]], assumed: "…"}
///
/// Exactly one of source and assumed; uncertainty is one standard deviation in percent. A value
/// that an override put there may stand alone and counts as assumed.
namespace tidegate {

/// The file name under which overrides are located.
inline constexpr const char* override_name = "override";

/// A strict map of cited values. Every value read is appended to `provenance` under its dotted
/// path.
class CitedMap {
 public:
  CitedMap(const yaml::Node& node, std::vector<Provenance>& provenance)
      : map_(node.map()), provenance_(&provenance) {}

  /// The keys that are plain: names, counts of parts, flags.
  yaml::Map& plain() { return map_; }
  bool has(const std::string& key) { return map_.has(key); }
  /// Whether the key, or its value, was set for this run.
  bool is_overridden(const std::string& key);

  /// The value itself, for dimensions that units.hpp does not have.
  yaml::Node value(const std::string& key) { return cited(key, "value"); }
  template <class Q>
  Q quantity(const std::string& key, yaml::Bound bound = yaml::Bound::positive) {
    return cited(key, "value").quantity<Q>(bound);
  }
  /// `fallback` stands for a feature that is off when the key is absent.
  template <class Q>
  Q quantity_or(const std::string& key, Q fallback) {
    return has(key) ? quantity<Q>(key, yaml::Bound::non_negative) : fallback;
  }
  double number(const std::string& key, double least, double most) {
    return cited(key, "value").number(least, most);
  }
  double number_or(const std::string& key, double fallback, double least, double most) {
    return has(key) ? number(key, least, most) : fallback;
  }
  bool flag_or(const std::string& key, bool fallback) {
    return has(key) ? cited(key, "value").flag() : fallback;
  }
  std::int64_t count(const std::string& key, std::int64_t least, std::int64_t most) {
    return cited(key, "value").count(least, most);
  }
  /// An efficiency in (0, 1] over the size of a kernel: points, or a single value.
  Curve efficiency(const std::string& key, Dimension size);

  /// The value that was read last is told among what is assumed, with this reason.
  void doubt_last(std::string why);
  /// Records a value that the profile leaves open.
  void assume(const std::string& key, std::string value, std::string why);

 private:
  yaml::Node cited(const std::string& key, const std::string& inner);
  void record(const yaml::Node& value, yaml::Map& leaf);

  yaml::Map map_;
  std::vector<Provenance>* provenance_;
};

}  // namespace tidegate
