#include "calib/profile/diff.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "calib/fit/noise.hpp"
#include "calib/profile/values.hpp"
#include "models/calibration.hpp"

namespace tidegate::calib {
namespace {

// Degrees of freedom that tell a value's uncertainty: passes, and what the rows of its kind add.
class Freedom {
 public:
  explicit Freedom(const std::string& path) : calibration_(load_calibration(path)) {}
  double of(const std::string& key) const {
    if (!calibration_ || calibration_->passes < 1) return std::numeric_limits<double>::infinity();
    return static_cast<double>(calibration_->passes) - 1 + of_kind(key);
  }

 private:
  double of_kind(const std::string& key) const {
    const auto known = [this](const char* kind) -> const Calibration::Noise* {
      const auto at = std::ranges::find(calibration_->noise, kind, &Calibration::Noise::kind);
      return at == calibration_->noise.end() ? nullptr : &*at;
    };
    const Calibration::Noise* noise = nullptr;
    if (key.starts_with("paths.")) noise = known("storage");
    if (key.starts_with("gpus.") || key.starts_with("fabric.")) noise = known("gpu");
    if (noise == nullptr && (key.starts_with("gpus.") || key.starts_with("host."))) {
      noise = known("compute");
    }
    return noise == nullptr ? 0 : noise->freedom;
  }

  std::optional<Calibration> calibration_;
};

// The ratio of two values that may be compared; of curves, at the size where it is farthest from 1.
struct Ratio {
  double value = 1;
  double compared = 1;  ///< sizes
};
std::optional<Ratio> ratio_of(const ProfileValue& a, const ProfileValue& b) {
  if (a.number && b.number) {
    if (!(*a.number > 0 && *b.number > 0)) return std::nullopt;
    return Ratio{*b.number / *a.number, 1};
  }
  Ratio ratio{1, 0};
  for (const auto& [size, before] : a.curve) {
    const auto same = std::ranges::find(b.curve, size, &std::pair<double, double>::first);
    if (same == b.curve.end() || !(before > 0 && same->second > 0)) continue;
    ++ratio.compared;
    const double here = same->second / before;
    if (std::abs(std::log(here)) > std::abs(std::log(ratio.value))) ratio.value = here;
  }
  return ratio.compared > 0 ? std::optional(ratio) : std::nullopt;
}

void compare(const ProfileValue& a, const ProfileValue& b, const Freedom& before,
             const Freedom& after, Diff& diff) {
  const auto ratio = ratio_of(a, b);
  if (ratio && a.uncertainty > 0 && b.uncertainty > 0) {
    const double noise = std::hypot(a.uncertainty, b.uncertainty);
    const double freedom =
        freedom_of_sum({a.uncertainty, before.of(a.key)}, {b.uncertainty, after.of(b.key)});
    const double p =
        std::min(1.0, ratio->compared * two_sided(std::log(ratio->value) / noise, freedom));
    diff.changes.push_back({a.key, a.text, b.text, ratio->value, noise, freedom, p});
  } else if (a.text == b.text || (a.number && a.number == b.number)) {
    ++diff.equal;
  } else {
    diff.untested.push_back({a.key, a.text, b.text});
  }
}

// Holm: the i-th smallest of m is multiplied by m - i, and none falls below the one before it.
void correct(std::vector<Diff::Change>& changes) {
  std::ranges::stable_sort(changes, {}, &Diff::Change::p);
  double least = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    least = std::max(least, changes[i].p * static_cast<double>(changes.size() - i));
    changes[i].p = std::min(1.0, least);
  }
}

}  // namespace

std::size_t Diff::beyond_noise() const {
  return static_cast<std::size_t>(std::ranges::count_if(changes, &Change::is_beyond_noise));
}

Diff diff(const std::string& before, const std::string& after) {
  const ProfileValues a = values_of(before), b = values_of(after);
  const Freedom freedom_before(before), freedom_after(after);
  Diff diff{.before = a.name, .after = b.name};
  for (const ProfileValue& value : a.values) {
    const auto other = std::ranges::find(b.values, value.key, &ProfileValue::key);
    if (other == b.values.end()) {
      diff.only_before.push_back(value.key);
    } else {
      compare(value, *other, freedom_before, freedom_after, diff);
    }
  }
  for (const ProfileValue& value : b.values) {
    if (std::ranges::find(a.values, value.key, &ProfileValue::key) == a.values.end()) {
      diff.only_after.push_back(value.key);
    }
  }
  correct(diff.changes);
  return diff;
}

}  // namespace tidegate::calib
