#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "sim/run/rok.hpp"

/// A RokPlot for people, for programs, and as a chart.
namespace tidegate {
namespace {

using Json = nlohmann::ordered_json;

constexpr double gibi = 1024.0 * 1024 * 1024;
constexpr double tera = 1e12;

std::string fit_text(const RokPlot::Point& point) {
  if (point.fits()) return "yes";
  const std::size_t more = point.overflows.size() - 1;
  return "no: " + point.overflows.front() + (more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string point_text(const RokPlot::Curve& curve, const RokPlot::Point& p) {
  return fmt::format("{}, micro-batch {}: {} of activations, {} per GPU{}", curve.name,
                     p.micro_batch, to_text(p.activation_peak), to_text(p.throughput),
                     p.fits() ? "" : "; does not fit");
}

Json point_json(const RokPlot::Point& p) {
  return {{"micro_batch", p.micro_batch},
          {"activation_peak_bytes", std::llround(p.activation_peak.value())},
          {"tflops_per_gpu", p.throughput.value() / tera},
          {"tokens_per_s", p.tokens_per_second},
          {"iteration_s", p.iteration_time.value()},
          {"fits", p.fits()},
          {"overflows", p.overflows}};
}

}  // namespace

std::string to_text(const RokPlot& plot) {
  Table table{
      .header = {"Activations", "micro-batch", "peak", "rate per GPU", "tokens/s", "fits"},
      .rows = {},
      .align = {Align::left, Align::right, Align::right, Align::right, Align::right, Align::left}};
  for (const RokPlot::Curve& curve : plot.curves) {
    for (const RokPlot::Point& p : curve.points) {
      table.rows.push_back({&p == curve.points.data() ? curve.name : "",
                            std::to_string(p.micro_batch), to_text(p.activation_peak),
                            to_text(p.throughput), number_text(p.tokens_per_second), fit_text(p)});
    }
  }
  return join({plot.scenario, plot.profile, plot.revision}, " · ") + "\n\n" + to_text(table) +
         fmt::format(
             "\nPeak: of one GPU in a steady iteration, without parameters and optimizer states. "
             "Room for it: {}.\n",
             to_text(plot.room));
}

std::string to_json(const RokPlot& plot) {
  Json curves = Json::array();
  for (const RokPlot::Curve& curve : plot.curves) {
    Json points = Json::array();
    for (const RokPlot::Point& p : curve.points) points.push_back(point_json(p));
    curves.push_back({{"name", curve.name}, {"policy", curve.policy}, {"points", points}});
  }
  const Json json = {
      {"schema", "tidegate.rok/1"},
      {"scenario", plot.scenario},
      {"profile", plot.profile},
      {"revision", plot.revision},
      {"room_bytes",
       std::isfinite(plot.room.value()) ? Json(std::llround(plot.room.value())) : Json(nullptr)},
      {"curves", curves}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Chart to_chart(const RokPlot& plot) {
  constexpr std::size_t columns = 105;
  Chart chart{.title = "Recompute, offload or keep",
              .subtitle = wrap(plot.scenario + " · " + plot.profile, columns),
              .x_label = "activation memory peak per GPU (GiB)",
              .y_label = "model throughput per GPU (TFLOP/s)"};
  bool is_any_hollow = false;
  for (const RokPlot::Curve& curve : plot.curves) {
    Chart::Series series{.name = curve.name};
    for (const RokPlot::Point& p : curve.points) {
      series.points.push_back({.x = p.activation_peak.value() / gibi,
                               .y = p.throughput.value() / tera,
                               .label = std::to_string(p.micro_batch),
                               .title = point_text(curve, p),
                               .is_hollow = !p.fits()});
      is_any_hollow |= !p.fits();
      chart.description += point_text(curve, p) + ". ";
    }
    chart.series.push_back(std::move(series));
  }
  std::string note = "Numbers at the points are micro-batch sizes. ";
  if (is_any_hollow) note += "Hollow: does not fit; rate as if there were enough memory. ";
  note += "Peak: without parameters and optimizer states. Predicted by tidegate " + plot.revision;
  chart.note = wrap(note + ".", columns);
  if (std::isfinite(plot.room.value()) && plot.room > Bytes(0))
    chart.limit = {plot.room.value() / gibi, "room " + to_text(plot.room)};
  return chart;
}

}  // namespace tidegate
