#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "calib/node/sections.hpp"
#include "calib/node/yaml_text.hpp"

namespace tidegate::calib {
namespace {

double in_flight(const Row& row) {
  return coordinate(row, "block") * coordinate(row, "depth") *
         std::max(1.0, coordinate(row, "files"));
}

// Rate and half size of r(f) = rate · f/(f + half) over the bytes in flight, where a fit tells
// them.
std::optional<Fit> rise(const std::vector<const RowResult*>& rows) {
  constexpr std::size_t least = 4;
  if (rows.size() < least) return std::nullopt;
  std::vector<Point> all = points(rows, {"block"});
  std::size_t at = 0;
  for (const RowResult* row : rows) {
    for (std::size_t i = 0; i < block_values(*row).size(); ++i) all[at++].x = {in_flight(row->row)};
  }
  return fit(Form::half_size, all);
}

/// Of one process, or, where nodes share the path and did so while it was measured, of all of them.
std::optional<Estimate> pure_rate(const Measurements& m, const std::string& quantity) {
  return plateau(rows_of(m, quantity), in_flight);
}

std::string load_of(const std::string& path) { return path + ".shared"; }

double most_clients(const Measurements& m, const std::string& path) {
  double most = 0;
  for (const RowResult* row : rows_of(m, load_of(path) + ".read")) {
    most = std::max(most, coordinate(row->row, "clients"));
  }
  return most;
}

/// What all clients together reach, and how that compares with one of them: where many reach as
/// many times as much, they are the limit and not the file system.
std::optional<Estimate> rate_of_all(const Measurements& m, const std::string& quantity,
                                    double clients) {
  const auto all = with(rows_of(m, quantity), "clients", clients);
  if (all.empty()) return std::nullopt;
  Estimate e = estimate(*all[0]);
  const auto one = with(rows_of(m, quantity), "clients", 1);
  if (one.empty()) return e;
  const double times = e.value / estimate(*one[0]).value;
  e.where += fmt::format(", {:.2g} times what one reaches", times);
  constexpr double nearly_all = 0.9;  // assumed: what counts as unhindered
  if (times >= nearly_all * clients) {
    e.where += ": the clients are the limit, more of them would reach more";
  }
  return e;
}

void add_pure(SectionWriter& out, const Measurements& m, const std::string& path, double clients) {
  for (const std::string direction : {"read", "write"}) {
    const std::string alone = path + "." + direction, shared = load_of(path) + "." + direction;
    if (clients > 1) {
      out.measured(direction, rate_of_all(m, shared, clients), shared, rate_text);
      out.measured("client_" + direction, pure_rate(m, alone), alone, rate_text);
    } else {
      out.measured(direction, pure_rate(m, alone), alone, rate_text);
    }
  }
}

struct MixedPoint {
  Estimate read, write;
};
/// With both directions busy.
std::vector<MixedPoint> mixed_points(const Measurements& m, const std::string& path) {
  std::vector<MixedPoint> all;
  for (const RowResult* row : rows_of(m, path + ".mixed_write")) {
    if (coordinate(row->row, "write_cap") <= 0) continue;
    for (const RowResult* other : rows_of(m, path + ".mixed_read")) {
      if (other->row.at == row->row.at) all.push_back({estimate(*other), estimate(*row)});
    }
  }
  return all;
}

struct Mixed {
  double read = 0, write = 0, uncertainty = 0;
  std::string how;
};

/// r = R (1 - w/W) by least squares through the points; nothing where noise could make the slope.
/// Writes that are paced to more than a busy drive gives are all the same point.
std::optional<Mixed> mixed_line(const std::vector<MixedPoint>& all) {
  if (all.size() < 2) return std::nullopt;
  double w = 0, r = 0, ww = 0, wr = 0;
  const auto n = static_cast<double>(all.size());
  for (const auto& [y, x] : all) w += x.value / n, r += y.value / n;
  for (const auto& [y, x] : all) {
    ww += (x.value - w) * (x.value - w);
    wr += (x.value - w) * (y.value - r);
  }
  const double slope = wr / ww;
  if (!(slope < 0)) return std::nullopt;
  Mixed line{r - slope * w, 0, 0, ""};
  line.write = line.read / -slope;
  double residual = 0, noise = 0;  // of one point, relative and absolute
  for (const auto& [y, x] : all) {
    const auto of_median = [](const Estimate& e) {
      return e.value * e.spread / std::sqrt(static_cast<double>(e.blocks));
    };
    noise += (std::pow(of_median(y), 2) + std::pow(slope * of_median(x), 2)) / n;
    line.uncertainty = std::max({line.uncertainty, x.spread, y.spread});
    const double error = (line.read * (1 - x.value / line.write) - y.value) / y.value;
    if (all.size() > 2) residual += error * error / n;  // a line goes through two points
  }
  if (-slope < 2 * std::sqrt(noise / ww)) return std::nullopt;
  line.uncertainty = std::max(line.uncertainty, std::sqrt(residual));
  line.how = fmt::format("line through {} rates with reads and writes at once, off by {:.1f} %",
                         all.size(), 100 * std::sqrt(residual));
  return line;
}

/// Where no line tells both ends: the pure rates over by how much reading and writing at once costs
/// more than the two in turn, c = 1 / (r/R + w/W), at least 1.
std::optional<Mixed> mixed_cost(const std::vector<MixedPoint>& all, const Estimate& read,
                                const Estimate& write) {
  if (all.empty()) return std::nullopt;
  std::vector<double> costs;
  Mixed mixed;
  for (const auto& [r, w] : all) {
    costs.push_back(1 / (r.value / read.value + w.value / write.value));
    mixed.uncertainty = std::max({mixed.uncertainty, r.spread, w.spread});
  }
  const double cost = std::max(1.0, median(costs));
  mixed.read = read.value / cost, mixed.write = write.value / cost;
  mixed.how = fmt::format(
      "{} rates with reads and writes at once, too near each other for a line: {:.2f} times as "
      "dear "
      "as in turn",
      all.size(), cost);
  return mixed;
}

// `path`: of one process, or load_of it.
void add_mixed(SectionWriter& out, const Measurements& m, const std::string& path, double clients) {
  const std::vector<MixedPoint> all = mixed_points(m, path);
  const auto pure = [&](const std::string& direction) {
    const std::string quantity = path + "." + direction;
    return clients > 1 ? rate_of_all(m, quantity, clients) : pure_rate(m, quantity);
  };
  const auto read = pure("read"), write = pure("write");
  auto mixed = mixed_line(all);
  if (!mixed && read && write) mixed = mixed_cost(all, *read, *write);
  if (!mixed) return;  // the reader assumes the pure rates, and says so
  const double freedom = static_cast<double>(all.front().write.blocks) - 1;
  const auto add = [&](const std::string& direction, double rate,
                       const std::optional<Estimate>& alone) {
    std::string source = "measured: " + mixed->how;
    // Mixing costs; what lies above the pure rate is noise.
    if (alone && rate > alone->value) {
      source += fmt::format("; its end at {} lies above the pure rate, which stands here",
                            rate_text(rate));
      rate = alone->value;
    }
    out.add({.key = direction + "_mixed",
             .text = rate_text(rate),
             .source = source,
             .uncertainty = mixed->uncertainty,
             .freedom = freedom});
  };
  add("read", mixed->read, read);
  add("write", mixed->write, write);
}

void add_size_effects(SectionWriter& out, const Measurements& m, const std::string& path) {
  auto latency = rows_of(m, path + ".latency_read");
  std::erase_if(latency, [](const RowResult* r) { return coordinate(r->row, "block") > 4096; });
  out.measured("latency", latency.empty() ? std::nullopt : std::optional(estimate(*latency[0])),
               path + ".latency_read", time_text);
  const auto f = rise(rows_of(m, path + ".read"));
  if (f && f->is_usable) {
    out.add({.key = "block_half_size",
             .text = size_text(f->parameter("half")),
             .source = "measured: " + path + ".read over bytes in flight, fitted"});
  } else {
    out.assumed("block_half_size", "0 B", "no rise with the bytes in flight that a fit could tell");
  }
}

// Where the driver counted the bytes that went straight between files and GPU memory, both ways.
void add_gpudirect(SectionWriter& out, const Measurements& m, const std::string& path) {
  const auto is_direct = [&](const char* direction) {
    return std::ranges::any_of(rows_of(m, path + direction),
                               [](const RowResult* r) { return coordinate(r->row, "way") == 1; });
  };
  if (!is_direct(".gds_read") || !is_direct(".gds_write")) return;
  out.told("gpudirect", "true",
           fmt::format("measured: {0}.gds_read and {0}.gds_write went direct", path));
}

}  // namespace

Section path_section(const Measurements& m, const StorageTarget& target,
                     std::vector<std::string>& missing) {
  SectionWriter out("paths." + target.name, missing);
  const rig::FileSystem& fs = target.facts;
  const rig::DeviceFacts device = rig::device_facts(fs.device);
  std::string name = fs.type + (fs.device.empty() ? "" : " on " + fs.device);
  if (!device.model.empty()) name += ", " + device.model;
  out.plain("count", "1");
  out.plain("name", scalar_text(name));
  out.told("capacity", size_text(fs.total.value()), "operating system: size of the file system");
  const double clients = target.is_shared ? most_clients(m, target.name) : 0;
  add_pure(out, m, target.name, clients);
  add_mixed(out, m, clients > 1 ? load_of(target.name) : target.name, clients);
  add_size_effects(out, m, target.name);
  add_gpudirect(out, m, target.name);
  if (target.is_shared) out.plain("shared", "true");
  return out.finish();
}

}  // namespace tidegate::calib
