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

// The bus bandwidth that the network lets a collective reach. A ring enters and leaves a node once;
// in an all-to-all each of the g GPUs sends (n-g)/n of its bytes out, of the (n-1)/n that it sends.
BytesPerSecond network_bus(const Collective& c, BytesPerSecond per_node) {
  if (c.kind != CollectiveKind::all_to_all || c.ranks <= c.gpus) return per_node;
  const double n = c.ranks, g = c.gpus;
  return per_node * ((n - 1) / (g * (n - g)));
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
    transfer.through(is_h2d ? roots_[root].h2d : roots_[root].d2h, is_h2d ? port.h2d : port.d2h);
  }
  transfer.through(ids.memory, device.memory_bandwidth);
}

void Machine::through_dram(Transfer& transfer, std::size_t numa, double times) const {
  ensure(numa < numa_.size(), "a place names a NUMA node of the host");
  transfer.through(numa_[numa].memory, host_.memory_bandwidth / times);
}

Demand Machine::price(const Delay& delay) const { return {.latency = delay.duration}; }

Demand Machine::price(const Compute& compute) const {
  ensure(compute.gpu < gpus_.size(), "a kernel names a GPU of the node");
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
  if (copy.from.tier == Tier::host && copy.to.tier == Tier::host) {
    Transfer transfer(copy.bytes, host_.copy_rate);
    const bool is_local = copy.from.index == copy.to.index;
    through_dram(transfer, copy.from.index, is_local ? 2 : 1);
    if (!is_local) through_dram(transfer, copy.to.index);
    return transfer.demand();
  }
  const Way way = copy.to.tier == Tier::gpu ? Way::h2d : Way::d2h;
  const std::size_t index = way == Way::h2d ? copy.to.index : copy.from.index;
  ensure(index < gpus_.size(), "a copy names a GPU of the node");
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
  ensure(from < gpus_.size() && to < gpus_.size(), "a copy names GPUs of the node");
  const BytesPerSecond source = gpus_[from].memory_bandwidth;
  if (from == to) {
    const double efficiency = gpus_[from].memory_efficiency.at(copy.bytes.value());
    Transfer transfer(copy.bytes, source / 2 * efficiency);
    transfer.through(gpu_[from].memory, source / 2);
    return transfer.demand(gpus_[from].launch);
  }
  Transfer transfer(copy.bytes,
                    fabric_.per_gpu * saturation(copy.bytes, gpus_[from].copy_half_size));
  const BytesPerSecond links = std::max(fabric_.links, fabric_.per_gpu);
  transfer.through(gpu_[from].fabric, links);
  transfer.through(gpu_[to].fabric, links);
  transfer.through(gpu_[from].memory, source);
  transfer.through(gpu_[to].memory, gpus_[to].memory_bandwidth);
  return transfer.demand();
}

Demand Machine::price(const FileIo& io) const {
  ensure(io.path < paths_.size(), "a file work names a storage path of the node");
  ensure(io.memory.tier != Tier::storage, "a file work moves bytes to or from memory");
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
    ensure(io.memory.index < gpus_.size(), "a file work names a GPU of the node");
    through_link(transfer, io.memory.index, is_read ? Way::h2d : Way::d2h);
  }
  return transfer.demand(path.latency);
}

Demand Machine::work_on_cores(std::uint16_t rank, Bytes moved, Seconds alone) const {
  const BytesPerSecond rate = moved / alone;
  const std::uint16_t numa = numa_of_rank(rank);
  Transfer transfer(moved, rate);
  transfer.through(numa_[numa].cores, rate * std::max(1.0, host_.ranks_per_numa));
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

Demand Machine::price(const Collective& collective) const {
  const std::size_t first = collective.first_gpu, count = collective.gpus;
  ensure(count >= 1 && first + count <= gpus_.size(), "a collective names GPUs of the node");
  if (collective.ranks <= 1 || collective.bytes == Bytes(0)) return {};
  const bool leaves = collective.ranks > collective.gpus;
  ensure(!leaves || nodes() > 1, "the ranks of a collective exist");
  const BytesPerSecond network = network_bus(collective, fabric_.per_node);
  BytesPerSecond bus =
      count > 1 ? fabric_.per_gpu * fabric_.efficiency.at(collective.bytes.value()) : network;
  if (leaves) bus = std::min(bus, network);
  Transfer transfer(collective.bytes * passes(collective), bus);
  for (std::size_t i = first; i < first + count; ++i) {
    if (count > 1) transfer.through(gpu_[i].fabric, std::max(fabric_.links, fabric_.per_gpu));
    const double part = gpus_[i].collective_compute_fraction;
    if (part > 0) transfer.through(gpu_[i].compute, bus / part);
  }
  if (leaves) transfer.through(network_, network);
  return transfer.demand(fabric_.latency + (leaves ? fabric_.network_latency : Seconds(0)));
}

}  // namespace tidegate
