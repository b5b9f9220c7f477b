#include "calib/profile/fit_charts.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "calib/fit/statistics.hpp"
#include "calib/profile/fitted.hpp"

namespace tidegate::calib {
namespace {

bool is_size(const std::string& name) {
  return name == "block" || name == "bytes" || name == "dirty" || name == "size";
}

// How a unit of the table is written at an axis.
struct Scale {
  std::string unit;
  double factor = 1;
};
Scale scale_of(const std::string& unit) {
  if (unit == "B/s") return {"GB/s", 1e-9};
  if (unit == "FLOP/s") return {"GFLOP/s", 1e-9};
  if (unit == "s") return {"µs", 1e6};
  return {unit, 1};
}
Scale scale_of_x(const std::string& name) {
  return is_size(name) ? Scale{name + " (MiB)", 1.0 / 1048576} : Scale{name, 1};
}

std::string unit_of(const Calibration::Fit& fit, const Calibration& c) {
  const auto at = std::ranges::find(c.tables, fit.quantity, &Calibration::Table::quantity);
  return at == c.tables.end() ? "" : at->unit;
}

bool has(const Row& row, const std::string& name, double value) {
  return std::ranges::any_of(row.at, [&](const auto& at) {
    return at.first == name && std::abs(at.second - value) <= 1e-4 * std::abs(value);
  });
}
bool lacks(const Row& row, const std::string& name) {
  return std::ranges::none_of(row.at, [&](const auto& at) { return at.first == name; });
}

// The row of the samples that a setting is of.
const RowResult* row_of(const Measurements& m, const Calibration::Fit& fit,
                        const std::vector<std::string>& names, const FittedSetting& setting) {
  const auto at = std::ranges::find_if(m.rows, [&](const RowResult& r) {
    if (r.row.quantity != fit.quantity || !r.faults.empty()) return false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!has(r.row, names[i], setting.x[i])) return false;
    }
    return std::ranges::all_of(fit.of, [&r](const auto& of) {
      return has(r.row, of.first, of.second) || lacks(r.row, of.first);
    });
  });
  return at == m.rows.end() ? nullptr : &*at;
}

struct Measured {
  double value = 0;
  std::string from;
};
std::vector<Measured> values_of(const FittedSetting& setting, const RowResult* row) {
  std::vector<Measured> all;
  if (row != nullptr) {
    for (const Block& block : row->blocks) {
      const double value = block.value();
      if (std::isfinite(value)) all.push_back({value, fmt::format("pass {}", block.pass + 1)});
    }
  }
  if (all.empty()) all.push_back({setting.measured, "median"});
  return all;
}

class FitCharts {
 public:
  FitCharts(const Calibration::Fit& fit, const Calibration& c, const Measurements* samples)
      : fit_(fit),
        samples_(samples),
        settings_(settings_of(fit, c)),
        names_(coordinates_of(fit, c)),
        y_(scale_of(unit_of(fit, c))) {}

  page::Html html() {
    if (settings_.empty() || names_.empty()) return {};
    x_ = scale_of_x(names_.back());
    for (const FittedSetting& s : settings_) add(s);
    for (auto& [group, series] : curves_) add_curve(group, series);
    const std::string state = fit_.is_used ? "" : " (not used: the table is)";
    page::Curves values{.title = fit_.quantity + ": measured, and " + fit_.form + " fitted" + state,
                        .description =
                            "Measured rates by setting with the fitted curve; the "
                            "table of the quantity has the same numbers.",
                        .x_label = x_.unit,
                        .y_label = y_.unit,
                        .x_is_log = true,
                        .y_is_log = true};
    page::Curves errors{.title = fit_.quantity + ": what the form misses",
                        .description = "log(model/measured) by setting, in percent",
                        .x_label = x_.unit,
                        .y_label = "log(model/measured), %",
                        .x_is_log = true};
    for (auto& [group, series] : curves_) values.series.push_back(std::move(series));
    for (auto& [group, series] : errors_) errors.series.push_back(std::move(series));
    page::Html html = page::curves(values);
    return html += page::curves(errors);
  }

 private:
  using Group = std::vector<double>;

  std::string name_of(const Group& group) const {
    std::string text;
    for (std::size_t i = 0; i < group.size(); ++i) {
      text += (text.empty() ? "" : ", ") + names_[i] + " " + coordinate_text(names_[i], group[i]);
    }
    return text;
  }

  void add(const FittedSetting& setting) {
    const Group group(setting.x.begin(), setting.x.end() - 1);
    page::Curves::Series& values = curves_[group];
    page::Curves::Series& errors = errors_[group];
    values.name = errors.name = name_of(group);
    const double x = setting.x.back() * x_.factor;
    const RowResult* row = samples_ == nullptr ? nullptr : row_of(*samples_, fit_, names_, setting);
    const std::string at = values.name + (values.name.empty() ? "" : ", ") + names_.back() + " " +
                           coordinate_text(names_.back(), setting.x.back());
    for (const Measured& m : calib::values_of(setting, row)) {
      const double error = 100 * std::log(setting.model / m.value);
      if (!(m.value > 0) || !std::isfinite(error)) continue;
      const std::string title =
          fmt::format("{}, {}: {:.4g} {}, model {:.4g}", at, m.from, m.value * y_.factor, y_.unit,
                      setting.model * y_.factor);
      values.points.push_back({x, m.value * y_.factor, title});
      errors.points.push_back({x, error, title});
    }
  }

  void add_curve(const Group& group, page::Curves::Series& series) const {
    double least = 0, most = 0;
    for (const FittedSetting& s : settings_) {
      if (!std::equal(group.begin(), group.end(), s.x.begin())) continue;
      least = most > 0 ? std::min(least, s.x.back()) : s.x.back();
      most = std::max(most, s.x.back());
    }
    if (!(least > 0) || least == most) return;
    constexpr int pieces = 60;
    std::vector<double> x(group);
    x.push_back(0);
    for (int i = 0; i <= pieces; ++i) {
      x.back() = least * std::pow(most / least, static_cast<double>(i) / pieces);
      const auto y = model_at(fit_, x);
      if (y && *y > 0) series.curve.emplace_back(x.back() * x_.factor, *y * y_.factor);
    }
  }

  const Calibration::Fit& fit_;
  const Measurements* samples_;
  std::vector<FittedSetting> settings_;
  std::vector<std::string> names_;
  Scale x_, y_;
  std::map<Group, page::Curves::Series> curves_, errors_;
};

}  // namespace

std::string coordinate_text(const std::string& name, double value) {
  return is_size(name) ? to_text(Bytes(value)) : fmt::format("{:g}", value);
}

page::Html fit_charts(const Calibration::Fit& fit, const Calibration& c,
                      const Measurements* samples) {
  return FitCharts(fit, c, samples).html();
}

page::Html canary_chart(const Measurements* samples) {
  page::Curves chart{.title = "Canaries: a fixed probe, again and again",
                     .description = "Each probe over its own median, by the time of the run",
                     .x_label = "time of the run (s)",
                     .y_label = "value over its median"};
  if (samples == nullptr) return {};
  for (const Canary& canary : samples->canaries) {
    if (canary.value.size() < 2) continue;
    page::Curves::Series series{.name = canary.name};
    const double middle = median(canary.value);
    for (std::size_t i = 0; i < std::min(canary.value.size(), canary.at.size()); ++i) {
      const double part = canary.value[i] / middle;
      series.points.push_back(
          {canary.at[i], part,
           fmt::format("{} at {:.0f} s: {:.3f}", canary.name, canary.at[i], part)});
      series.curve.emplace_back(canary.at[i], part);
    }
    chart.series.push_back(std::move(series));
  }
  return page::curves(chart);
}

}  // namespace tidegate::calib
