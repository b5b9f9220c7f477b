#include "calib/node/sections.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "calib/node/yaml_text.hpp"
#include "models/base/yaml.hpp"

namespace tidegate::calib {
namespace {

std::string measured_by(const std::string& quantity, const Estimate& e) {
  return fmt::format("measured: {}{}{}; {} block{}", quantity, e.where.empty() ? "" : ", ", e.where,
                     e.blocks, e.blocks == 1 ? "" : "s");
}

std::function<double(const Row&)> by(const std::string& name) {
  return [name](const Row& row) { return coordinate(row, name); };
}

// Items per second, whichever way the row says it.
std::optional<Estimate> rate_of(std::optional<Estimate> e,
                                const std::vector<const RowResult*>& rows, double items) {
  if (e && !rows.empty() && rows[0]->row.unit == Unit::seconds) e->value = items / e->value;
  return e;
}

// A memory's rate as the model counts bytes (models/price.cpp): what is read and what is written,
// without lines fetched before a store. The model draws Adam, casts and copies from one memory, all
// of which read and write, and would slow down what moves more than that memory gives. So the
// fastest of the streams that do both tells it, of all threads and of arrays that no cache holds.
// Pure reads reach more, and no work of a training step is that.
struct MemoryStream {
  const char* quantity;
  const char* size;
  double held, moved;  // bytes of an item that lie in memory, and that its rate stands for
};
constexpr MemoryStream memory_streams[] = {{"dram.copy_streaming", "bytes", 2, 1},
                                           {"dram.triad", "bytes", 3, 1},
                                           {"adam", "parameters", 16, 28}};

}  // namespace

void add_memory_bandwidth(SectionWriter& out, const Measurements& m, const Setup& setup) {
  std::optional<Estimate> best;
  std::string quantity = "dram.triad";
  for (const MemoryStream& stream : memory_streams) {
    auto rows = with(with(rows_of(m, stream.quantity), "threads", setup.threads), "gradient", 0);
    std::erase_if(rows, [&](const RowResult* row) {
      return stream.held * coordinate(row->row, stream.size) <
             2 * setup.host.last_level_cache.value();
    });
    auto e = largest(rows, by(stream.size));
    if (!e) continue;
    e->value *= stream.moved;
    if (best && e->value <= best->value) continue;
    best = e;
    quantity = stream.quantity;
    if (stream.moved > 1) quantity += fmt::format(" at {:g} B", stream.moved);
  }
  if (best) best->where += ", the fastest of what reads and writes";
  out.measured("memory_bandwidth", best, quantity, rate_text);
}

std::string rate_text(double v) { return fmt::format("{:.4g} GB/s", v / 1e9); }
std::string flops_text(double v) {
  return v < 1e12 ? fmt::format("{:.4g} GFLOP/s", v / 1e9)
                  : fmt::format("{:.4g} TFLOP/s", v / 1e12);
}
std::string number_text(double v) { return fmt::format("{:.4g}", v); }
std::string size_text(double v) {
  if (v >= 1024. * 1024 * 1024) return fmt::format("{:.5g} GiB", v / 1024 / 1024 / 1024);
  if (v >= 1024. * 1024) return fmt::format("{:.5g} MiB", v / 1024 / 1024);
  if (v >= 1024) return fmt::format("{:.5g} KiB", v / 1024);
  return fmt::format("{:.0f} B", v);
}
std::string time_text(double v) {
  return v < 1e-3 ? fmt::format("{:.4g} us", v * 1e6) : fmt::format("{:.4g} ms", v * 1e3);
}

void SectionWriter::measured(const std::string& key, const std::optional<Estimate>& estimate,
                             const std::string& quantity,
                             const std::function<std::string(double)>& text) {
  if (!estimate) {
    missing_.push_back(section_.key + "." + key);
    return;
  }
  add({.key = key,
       .text = text(estimate->value),
       .source = measured_by(quantity, *estimate),
       .uncertainty = estimate->spread,
       .freedom = static_cast<double>(estimate->blocks) - 1});
}
void SectionWriter::told(const std::string& key, std::string text, std::string source) {
  add({.key = key, .text = std::move(text), .source = std::move(source)});
}
void SectionWriter::assumed(const std::string& key, std::string text, std::string why) {
  add({.key = key, .text = std::move(text), .source = std::move(why), .is_assumed = true});
}
void SectionWriter::plain(const std::string& key, std::string text) {
  add({.key = key, .text = std::move(text), .kind = Entry::Kind::plain});
}

Section host_section(const Measurements& m, const Setup& setup, std::vector<std::string>& missing) {
  SectionWriter out("host", missing);
  const rig::HostFacts& host = setup.host;
  const double threads = setup.threads;
  out.told("numa_nodes", fmt::format("{}", host.numa_nodes), "operating system");
  out.told("cores", fmt::format("{}", host.physical_cores), "operating system");
  out.told("memory", size_text(host.memory.value()), "operating system: MemTotal");
  add_memory_bandwidth(out, m, setup);
  const auto adam = with(with(rows_of(m, "adam"), "threads", threads), "gradient", 0);
  double parameters = 0;
  for (const RowResult* r : adam)
    parameters = std::max(parameters, coordinate(r->row, "parameters"));
  out.measured("adam_rate", rate_of(largest(adam, by("parameters")), adam, parameters), "adam",
               number_text);
  const auto cast = with(rows_of(m, "cast"), "threads", threads);
  out.measured("cast_rate", largest(cast, by("elements")), "cast", number_text);
  out.measured("copy_rate", plateau(with(rows_of(m, "host_copy"), "threads", 1), by("bytes")),
               "host_copy", rate_text);
  out.told("base_use", size_text((host.memory - host.memory_available).value()),
           "operating system: MemTotal less MemAvailable when measuring began");
  return out.finish();
}

Section network_section(const Measurements& m, std::vector<std::string>& missing) {
  SectionWriter out("network", missing);
  const auto rows = rows_of(m, "net.send");
  double nodes = 1;
  for (const RowResult* row : rows_of(m, "net.all_reduce")) {
    nodes = std::max(nodes, coordinate(row->row, "ranks"));
  }
  out.plain("nodes", fmt::format("{:g}", nodes));
  out.measured("per_node", plateau(rows, by("bytes")), "net.send", rate_text);
  std::vector<const RowResult*> latencies = rows_of(m, "net.latency");
  out.measured("latency", plateau(latencies, [](const Row&) { return 1.0; }), "net.latency",
               time_text);
  return out.finish();
}

Section component_section(const NamedGpus& gpus) {
  const yaml::Value values = yaml::load_file(gpus.component);
  Section section{"gpus", {}};
  section.entries.push_back(
      {.key = "count", .text = fmt::format("{}", gpus.count), .kind = Entry::Kind::plain});
  for (const yaml::Entry& e : values.entries) {
    if (e.key == "kind" || e.key == "description") continue;
    section.entries.push_back(
        {.key = e.key, .text = flow_text(e.value), .kind = Entry::Kind::plain});
  }
  return section;
}

}  // namespace tidegate::calib
