// What each work costs on a machine: Machine::price. The rules stand in machine.hpp and
// devices.hpp.
#include <algorithm>
#include <array>

#include "models/base/error.hpp"
#include "models/machine.hpp"

namespace tidegate {

/// Bytes on their way through resources in turn, no faster than the slowest.
class Machine::Transfer {
 public:
  Transfer(Bytes bytes, BytesPerSecond rate) : bytes_(bytes), rate_(rate) {
    ensure(rate > BytesPerSecond(0), "what is used has a rate");
  }

  void through(ResourceId resource, BytesPerSecond capacity, std::uint8_t side = 0) {
    ensure(capacity > BytesPerSecond(0), "what is passed has a rate");
    ensure(count_ < legs_.size(), "a work uses at most Demand::most_shares resources");
    rate_ = std::min(rate_, capacity);
    legs_[count_++] = {resource, capacity, side};
  }

  Demand demand(Seconds latency = Seconds(0)) const {
    Demand demand{.latency = latency, .alone = bytes_ / rate_, .amount = bytes_.value()};
    for (std::size_t i = 0; i < count_; ++i) {
      demand.use(legs_[i].resource, rate_ / legs_[i].capacity, legs_[i].side);
    }
    return demand;
  }

 private:
  struct Leg {
    ResourceId resource{};
    BytesPerSecond capacity;
    std::uint8_t side = 0;
  };
  Bytes bytes_;
  BytesPerSecond rate_;
  std::array<Leg, Demand::most_shares> legs_{};
  std::size_t count_ = 0;
};

namespace {

// The part of the full rate that `size` reaches when half of it is lost at `half`.
double saturation(Bytes size, Bytes half) { return size / (size + half); }

// Bytes of a collective on the busiest link, as if all of them went at the bus bandwidth.
double passes(const Collective& c) {
  const double n = c.ranks;
  switch (c.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::broadcast:
      return 1;
  }
  ensure(false, "every collective has a cost");
  return 0;
}

// Bytes that leave a node for each byte at the bus bandwidth. A ring enters and leaves a node once;
// in an all-to-all each of the g GPUs sends (n-g)/n of its bytes out, of the (n-1)/n that it sends.
double leaving(const Collective& c) {
  if (c.kind != CollectiveKind::all_to_all) return 1;
  const double n = c.ranks, g = c.ranks_per_node();
  return g * (n - g) / (n - 1);
}

}  // namespace

void Machine::through_link(Transfer& transfer, std::size_t gpu, Way way) const {
  const Gpu& device = gpus_[gpu];
  const GpuResources& ids = gpu_[gpu];
  const bool is_h2d = way == Way::h2d;
  transfer.through(is_h2d ? ids.link.h2d : ids.link.d2h, is_h2d ? device.h2d : device.d2h);
  if (ids.pcie) transfer.through(*ids.pcie, device.duplex);
  if (device.root >= 0) {
    const auto root = static_cast<std::size_t>(device.root);
    const RootPort& port = host_.roots[root];
    const auto before = static_cast<std::size_t>(node_of_gpu(gpu)) * host_.roots.size();
    const auto& [link, part] = roots_[before + root];
    transfer.through(is_h2d ? link.h2d : link.d2h, (is_h2d ? port.h2d : port.d2h) * part);
  }
  transfer.through(ids.memory, device.memory_bandwidth);
}

void Machine::through_dram(Transfer& transfer, std::size_t numa, double times) const {
  ensure(numa < numa_.size(), "a place names a NUMA node of the machine");
  transfer.through(numa_[numa].memory, host_.memory_bandwidth * numa_[numa].part / times);
}

Demand Machine::price(const Delay& delay) const { return {.latency = delay.duration}; }

Demand Machine::price(const Compute& compute) const {
  ensure(compute.gpu < gpus_.size(), "a kernel names a GPU of the machine");
  const Gpu& gpu = gpus_[compute.gpu];
  Seconds alone;
  Bytes traffic;
  for (const Kernel& kernel : compute.kernels) {
    alone += gpu.alone(kernel);
    traffic += gpu.memory_traffic(kernel);
  }
  if (alone == Seconds(0)) return {};
  Demand demand{
      .alone = alone, .amount = alone.value(), .weight = 1 / gpu.memory_bandwidth.value()};
  demand.use(gpu_[compute.gpu].compute, 1);
  if (traffic > Bytes(0)) {
    demand.use(gpu_[compute.gpu].memory, std::min(1.0, traffic / (alone * gpu.memory_bandwidth)));
  }
  return demand;
}

Demand Machine::price(const Copy& copy) const {
  ensure(copy.from.tier != Tier::storage && copy.to.tier != Tier::storage,
         "storage is reached by file works, not by copies");
  if (copy.bytes == Bytes(0)) return {};
  if (copy.from.tier == Tier::gpu && copy.to.tier == Tier::gpu) return copy_between_gpus(copy);
  ensure(node_of(copy.from) == node_of(copy.to), "host memory is reached within its node");
  if (copy.from.tier == Tier::host && copy.to.tier == Tier::host) {
    Transfer transfer(copy.bytes, host_.copy_rate);
    const bool is_local = copy.from.index == copy.to.index;
    through_dram(transfer, copy.from.index, is_local ? 2 : 1);
    if (!is_local) through_dram(transfer, copy.to.index);
    return transfer.demand();
  }
  const Way way = copy.to.tier == Tier::gpu ? Way::h2d : Way::d2h;
  const std::size_t index = way == Way::h2d ? copy.to.index : copy.from.index;
  ensure(index < gpus_.size(), "a copy names a GPU of the machine");
  const Gpu& gpu = gpus_[index];
  const double pinning = copy.pinning == Pinning::pinned ? 1 : gpu.pageable_factor;
  Transfer transfer(copy.bytes, (way == Way::h2d ? gpu.h2d : gpu.d2h) * pinning *
                                    saturation(copy.bytes, gpu.copy_half_size));
  through_link(transfer, index, way);
  through_dram(transfer, way == Way::h2d ? copy.from.index : copy.to.index);
  return transfer.demand();
}

Demand Machine::copy_between_gpus(const Copy& copy) const {
  const std::size_t from = copy.from.index, to = copy.to.index;
  ensure(from < gpus_.size() && to < gpus_.size(), "a copy names GPUs of the machine");
  const BytesPerSecond source = gpus_[from].memory_bandwidth;
  if (from == to) {
    const double efficiency = gpus_[from].memory_efficiency.at(copy.bytes.value());
    Transfer transfer(copy.bytes, source / 2 * efficiency);
    transfer.through(gpu_[from].memory, source / 2);
    return transfer.demand(gpus_[from].launch);
  }
  if (node_of_gpu(from) != node_of_gpu(to)) return copy_between_nodes(copy);
  Transfer transfer(copy.bytes, fabric_.per_gpu);
  const BytesPerSecond links = std::max(fabric_.links, fabric_.per_gpu);
  transfer.through(gpu_[from].fabric, links);
  transfer.through(gpu_[to].fabric, links);
  transfer.through(gpu_[from].memory, source);
  transfer.through(gpu_[to].memory, gpus_[to].memory_bandwidth);
  return transfer.demand(fabric_.latency);
}

Demand Machine::copy_between_nodes(const Copy& copy) const {
  const std::size_t from = copy.from.index, to = copy.to.index;
  Transfer transfer(copy.bytes, fabric_.per_nic);
  transfer.through(network_[static_cast<std::size_t>(node_of_gpu(from))].out, network_here());
  transfer.through(network_[static_cast<std::size_t>(node_of_gpu(to))].in, network_here());
  transfer.through(gpu_[from].memory, gpus_[from].memory_bandwidth);
  transfer.through(gpu_[to].memory, gpus_[to].memory_bandwidth);
  return transfer.demand(fabric_.network_latency);
}

Demand Machine::price(const FileIo& io) const {
  ensure(io.path < paths_.size(), "a file work names a storage path of the machine");
  ensure(io.memory.tier != Tier::storage, "a file work moves bytes to or from memory");
  ensure(node_of({Tier::storage, io.path}) == node_of(io.memory),
         "a storage path serves the memory of its node");
  if (io.bytes == Bytes(0)) return {};
  const StoragePath& path = paths_[io.path];
  const bool is_read = io.direction == Direction::read;
  const BytesPerSecond pure = (is_read ? path.read : path.write) / (path.is_shared ? nodes() : 1);
  const BytesPerSecond client = is_read ? path.client_read : path.client_write;
  const Bytes in_flight = std::min(io.bytes, io.block * io.queue_depth * io.threads);
  BytesPerSecond rate = pure * saturation(in_flight, path.block_half_size);
  if (client > BytesPerSecond(0)) rate = std::min(rate, client);
  Transfer transfer(io.bytes, rate);
  transfer.through(path_[io.path], pure, is_read ? 0 : 1);
  if (io.memory.tier == Tier::host) {
    through_dram(transfer, io.memory.index);
  } else {
    ensure(path.gpudirect, "a storage path without GPUDirect does not reach GPU memory");
    through_link(transfer, io.memory.index, is_read ? Way::h2d : Way::d2h);
  }
  return transfer.demand(path.latency);
}

Demand Machine::work_on_cores(std::uint16_t rank, Bytes moved, Seconds alone) const {
  const BytesPerSecond rate = moved / alone;
  const std::uint16_t numa = numa_of_rank(rank);
  Transfer transfer(moved, rate);
  transfer.through(numa_[numa].cores,
                   rate * std::max(1.0, host_.ranks_per_numa) * numa_[numa].part);
  through_dram(transfer, numa);
  return transfer.demand();
}

Demand Machine::price(const AdamStep& adam) const {
  if (adam.parameters == 0) return {};
  const auto parameters = static_cast<double>(adam.parameters);
  return work_on_cores(adam.rank, Bytes(parameters * (24 + bytes_per_element(adam.gradient))),
                       Seconds(parameters / host_.adam_rate));
}

Demand Machine::price(const Cast& cast) const {
  if (cast.elements == 0) return {};
  const auto elements = static_cast<double>(cast.elements);
  const double bytes = bytes_per_element(cast.from) + bytes_per_element(cast.to);
  return work_on_cores(cast.rank, Bytes(elements * bytes), Seconds(elements / host_.cast_rate));
}

BytesPerSecond Machine::network_here() const { return fabric_.per_node / extent_.fold; }

std::int32_t Machine::most_on_a_node(const Collective& c) const {
  std::int32_t most = 0, here = 0, node = -1;
  for (std::size_t i = 0; i < c.gpus; ++i) {
    const std::int32_t at = node_of_gpu(c.first_gpu + i * c.stride);
    here = at == node ? here + 1 : 1;
    node = at;
    most = std::max(most, here);
  }
  return most;
}

Demand Machine::price(const Collective& c) const {
  const std::size_t last = c.first_gpu + (c.gpus - std::size_t{1}) * c.stride;
  ensure(c.gpus >= 1 && c.stride >= 1 && last < gpus_.size(),
         "a collective names GPUs of the machine");
  if (c.ranks <= 1 || c.bytes == Bytes(0)) return {};
  const std::int32_t most = most_on_a_node(c), per_node = c.ranks_per_node();
  ensure(most <= per_node && per_node <= node_size_ && c.ranks >= c.gpus,
         "a node has at least those ranks of a collective that are simulated");
  ensure(c.ranks <= std::int64_t{per_node} * nodes(), "the ranks of a collective exist");
  ensure(c.leaves_node() || most == c.gpus, "a collective within a node is on one node");
  // `most` of the ranks on a node stand for all of them, and have their part of its network.
  const double out = c.leaves_node() ? leaving(c) : 1;
  const BytesPerSecond here = network_here() * per_node / most / out;
  const BytesPerSecond network =
      std::min({fabric_.per_node / out, fabric_.per_nic * per_node / out, here});
  BytesPerSecond bus =
      per_node > 1 ? fabric_.per_gpu * fabric_.efficiency.at(c.bytes.value()) : network;
  if (c.leaves_node()) bus = std::min(bus, network);
  Transfer transfer(c.bytes * passes(c), bus);
  std::int32_t before = -1;
  for (std::size_t i = c.first_gpu; i <= last; i += c.stride) {
    if (per_node > 1) transfer.through(gpu_[i].fabric, std::max(fabric_.links, fabric_.per_gpu));
    const double part = gpus_[i].collective_compute_fraction;
    if (part > 0) transfer.through(gpu_[i].compute, bus / part);
    const std::int32_t node = node_of_gpu(i);
    if (!c.leaves_node() || node == before) continue;
    transfer.through(network_[static_cast<std::size_t>(node)].out, here);
    transfer.through(network_[static_cast<std::size_t>(node)].in, here);
    before = node;
  }
  return transfer.demand(fabric_.latency +
                         (c.leaves_node() ? fabric_.network_latency : Seconds(0)));
}

}  // namespace tidegate
