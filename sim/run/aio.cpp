#include "sim/run/aio.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include <fmt/core.h>

#include "sim/report/table.hpp"
#include "sim/report/words.hpp"

namespace tidegate {
namespace {

// From the least block that calib measures to the most that it has under way.
constexpr double least_in_flight = 128 * 1024, most_in_flight = 256. * 1024 * 1024;

/// The largest transfers of a path, and who makes them.
struct Use {
  std::optional<FileIo> read, write;
  std::set<std::uint16_t> gpus;  ///< that the path reaches without the host

  void add(const FileIo& io) {
    auto& mine = io.direction == Direction::read ? read : write;
    if (!mine || mine->bytes < io.bytes) mine = io;
    if (io.memory.tier == Tier::gpu) gpus.insert(io.memory.index);
  }
  const FileIo& any() const { return read ? *read : *write; }
};

BytesPerSecond alone(const Machine& machine, const std::optional<FileIo>& use, Bytes in_flight) {
  if (!use) return {};
  FileIo io = *use;
  io.block = in_flight, io.queue_depth = 1, io.threads = 1;
  const Demand demand = machine.demand(io);
  return io.bytes / (demand.latency + demand.alone);
}

AioRates rates_at(const Machine& machine, const Use& use, const AioPath& path, Bytes in_flight) {
  AioRates rates{.in_flight = in_flight,
                 .read = alone(machine, use.read, in_flight),
                 .write = alone(machine, use.write, in_flight)};
  rates.read_together = std::min(path.read, rates.read * path.ranks);
  rates.write_together = std::min(path.write, rates.write * path.ranks);
  return rates;
}

std::string source_of_half(const Machine& machine, const std::string& path) {
  for (const Provenance& p : machine.provenance()) {
    if (p.key == "paths." + path + ".block_half_size")
      return (p.assumed ? "assumed: " : "") + p.source;
  }
  return "";
}

AioPath path_of(const Scenario& scenario, const Machine& machine, std::uint16_t p, const Use& use,
                double margin) {
  const StoragePath& storage = machine.paths()[p];
  const double share = storage.is_shared ? machine.nodes() : 1;
  const FileIo& io = use.any();
  AioPath path{
      .name = storage.name,
      .read = storage.read / share,
      .write = storage.write / share,
      .half = storage.block_half_size,
      .half_source = source_of_half(scenario.machine, storage.name),
      .transfer = io.bytes,
      .ranks = use.gpus.empty() ? scenario.ranks : static_cast<std::int32_t>(use.gpus.size()),
      .now = {io.block, io.queue_depth, io.threads}};
  path.at_now = rates_at(machine, use, path, path.now.in_flight());
  const auto is_enough = [&](const AioRates& r) {
    return (!use.read || r.read_together >= path.read * (1 - margin)) &&
           (!use.write || r.write_together >= path.write * (1 - margin));
  };
  for (double f = least_in_flight; f <= most_in_flight; f *= 2) {
    path.rates.push_back(rates_at(machine, use, path, Bytes(f)));
    if (!path.enough && is_enough(path.rates.back())) path.enough = Bytes(f);
  }
  return path;
}

std::string rate_text(BytesPerSecond rate) {
  return rate > BytesPerSecond(0) ? to_text(rate) : "-";
}

std::string rates_text(const AioPath& path) {
  const std::string all = fmt::format("{} ranks", path.ranks);
  Table table{.header = {"in flight of a rank", "1 rank reads", "writes", all + " read", "write"},
              .rows = {},
              .align = {}};
  // Below half there is nothing to gain from being exact; above what is enough nothing at all.
  for (const AioRates& r : path.rates) {
    table.rows.push_back({to_text(r.in_flight), rate_text(r.read), rate_text(r.write),
                          rate_text(r.read_together), rate_text(r.write_together)});
    if (path.enough && r.in_flight > *path.enough * 8) break;
  }
  return to_text(table);
}

std::string path_text(const AioPath& path, double margin, std::size_t width) {
  std::string text = wrap(
      fmt::format("{}: reads {}, writes {}; one rank reaches half of it with {} in flight ({}).",
                  path.name, to_text(path.read), to_text(path.write), to_text(path.half),
                  path.half_source.empty() ? "of the profile" : path.half_source),
      width);
  text += "\n\n" + rates_text(path) + "\n";
  const AioRates& now = path.at_now;
  text += wrap(fmt::format(
                   "Now: block_size {} x queue_depth {} x thread_count {} = {}, of transfers of {} "
                   "at most: one rank reads {} and writes {}, {} read {} and write {}.",
                   to_text(path.now.block), path.now.depth, path.now.threads,
                   to_text(path.now.in_flight()), to_text(path.transfer), rate_text(now.read),
                   rate_text(now.write), path.ranks, rate_text(now.read_together),
                   rate_text(now.write_together)),
               width) +
          "\n";
  if (!path.enough) {
    return text +
           wrap(fmt::format("No setting of the table reaches the path's rates within {:g} %.",
                            100 * margin),
                width) +
           "\n";
  }
  return text +
         wrap(fmt::format(
                  "Enough: {} in flight of each rank. More gains less than {:g} % when all {} "
                  "ranks use the path at once.",
                  to_text(*path.enough), 100 * margin, path.ranks),
              width) +
         "\n";
}

}  // namespace

AioTable aio_table(const Scenario& scenario, const Prediction& prediction, double margin) {
  AioTable table{.scenario = scenario.name,
                 .profile = scenario.machine.name(),
                 .revision = revision(),
                 .margin = margin,
                 .paths = {}};
  const Machine machine = machine_here(scenario, scenario.machine);
  std::vector<Use> uses(machine.paths().size());
  for (const Work& work : prediction.plan.works) {
    if (const auto* io = std::get_if<FileIo>(&work)) uses[io->path].add(*io);
  }
  for (std::uint16_t p = 0; p < uses.size(); ++p) {
    if (uses[p].read || uses[p].write)
      table.paths.push_back(path_of(scenario, machine, p, uses[p], margin));
  }
  return table;
}

std::string to_text(const AioTable& table, std::size_t width) {
  std::string text =
      wrap(fmt::format("{} · {} · {}", table.scenario, table.profile, table.revision), width) +
      "\n\n";
  if (table.paths.empty()) return text + "Nothing is kept in files: aio has no say.\n";
  for (const AioPath& path : table.paths) text += path_text(path, table.margin, width) + "\n";
  return text +
         wrap(
             "In this model only block_size x queue_depth x thread_count counts. Blocks below 128 "
             "KiB "
             "run into a drive's requests per second, which is not in it; nor is what "
             "single_submit, "
             "overlap_events and use_gds change, nor the CPU time of submitting. A value that is "
             "assumed makes this table an assumption: tidegate calib --storage DIR --full measures "
             "it.",
             width) +
         "\n";
}

}  // namespace tidegate
