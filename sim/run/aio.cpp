#include "sim/run/aio.hpp"

#include <algorithm>
#include <set>
#include <variant>

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

}  // namespace tidegate
