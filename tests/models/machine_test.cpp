#include "models/machine.hpp"

#include "tests/catch.hpp"
#include "tests/models/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using toy::share;

namespace {
constexpr Place gpu0{Tier::gpu, 0};
constexpr Place gpu1{Tier::gpu, 1};
constexpr Place host0{Tier::host, 0};
constexpr Place host1{Tier::host, 1};
}  // namespace

TEST_CASE("a delay passes time and uses nothing", "[machine]") {
  const Demand d = toy::machine().demand(Delay{3_s});
  CHECK(d.latency == 3_s);
  CHECK(d.alone == 0_s);
  CHECK(d.used().empty());
}

TEST_CASE("kernels take their GPU and the part of memory that they move", "[machine]") {
  const Machine m = toy::machine();
  // 1 TFLOP = 1 s with 3 · 2 B · (5e11)^(2/3); beside it 50 GB of traffic at 100 GB/s = 0.5 s.
  const Compute work{1, {Gemm{10000, 10000, 5000}, Elementwise{50_GB, 1}}};
  const Demand d = m.demand(work);
  CHECK(d.alone.value() == Approx(1.5));
  CHECK(d.amount == Approx(1.5));
  CHECK(share(m, d, "gpu1.compute") == 1);
  // (50 GB + (5e7 + 5e7 + 1e8) · 2 B) / (1.5 s · 100 GB/s)
  CHECK(share(m, d, "gpu1.hbm") == Approx(50.4 / 150));
  CHECK(d.weight == Approx(1e-11));
  CHECK(m.demand(Compute{0, {}}).used().empty());
}

TEST_CASE("a pinned copy takes link, HBM and DRAM at the rate of the link", "[machine]") {
  const Machine m = toy::machine();
  const Demand d = m.demand(Copy{host1, gpu0, 20_GB});
  CHECK(d.alone.value() == Approx(2));
  CHECK(d.amount == Approx(20e9));
  CHECK(share(m, d, "gpu0.h2d") == Approx(1));
  CHECK(share(m, d, "gpu0.hbm") == Approx(0.1));
  CHECK(share(m, d, "numa1.dram") == Approx(0.25));
  CHECK(d.share_count == 3);
  CHECK(share(m, m.demand(Copy{gpu0, host0, 1_GB}), "gpu0.d2h") == Approx(1));
}

TEST_CASE("small and pageable copies are slower", "[machine]") {
  Gpu gpu = toy::gpu();
  gpu.copy_half_size = 1_GB;
  gpu.pageable_factor = 0.5;
  const Machine m = toy::machine({gpu});
  // 1 GB at half of 10 GB/s, then at half of that.
  CHECK(m.demand(Copy{host0, gpu0, 1_GB}).alone.value() == Approx(0.2));
  CHECK(m.demand(Copy{host0, gpu0, 1_GB, Pinning::pageable}).alone.value() == Approx(0.4));
  // (3 GB + 1 GB) / 10 GB/s: the half size acts as a fixed time.
  CHECK(m.demand(Copy{host0, gpu0, 3_GB}).alone.value() == Approx(0.4));
}

TEST_CASE("directions that disturb each other share one more resource", "[machine]") {
  Gpu gpu = toy::gpu();
  gpu.duplex = 16_GBps;
  const Machine m = toy::machine({gpu});
  CHECK(share(m, m.demand(Copy{host0, gpu0, 1_GB}), "gpu0.pcie") == Approx(10.0 / 16));
  CHECK(share(m, m.demand(Copy{gpu0, host0, 1_GB}), "gpu0.pcie") == Approx(10.0 / 16));
  gpu.duplex = 20_GBps;
  CHECK(toy::machine({gpu}).resources().size() == m.resources().size() - 1);
}

TEST_CASE("a root port slower than the link limits it and is shared", "[machine]") {
  Host host = toy::host();
  host.roots = {{"plx0", 5_GBps, 20_GBps}};
  Gpu gpu = toy::gpu();
  gpu.root = 0;
  const Machine m = toy::machine({gpu, gpu}, toy::drive(), toy::fabric(), host);
  const Demand in = m.demand(Copy{host0, gpu1, 10_GB});
  CHECK(in.alone.value() == Approx(2));
  CHECK(share(m, in, "plx0.h2d") == Approx(1));
  CHECK(share(m, in, "gpu1.h2d") == Approx(0.5));
  CHECK(share(m, m.demand(Copy{gpu0, host0, 10_GB}), "plx0.d2h") == Approx(0.5));
}

TEST_CASE("copies within one kind of memory read it and write it", "[machine]") {
  const Machine m = toy::machine();
  // memcpy at 8 GB/s moves 16 of the 40 GB/s of a NUMA node; to the other node 8 of each.
  const Demand local = m.demand(Copy{host0, host0, 8_GB});
  CHECK(local.alone.value() == Approx(1));
  CHECK(share(m, local, "numa0.dram") == Approx(0.4));
  CHECK(share(m, m.demand(Copy{host0, host1, 8_GB}), "numa1.dram") == Approx(0.2));
  // 20 GB/s between GPUs, 50 GB/s within one.
  const Demand peer = m.demand(Copy{gpu0, gpu1, 20_GB});
  CHECK(peer.alone.value() == Approx(1));
  CHECK(share(m, peer, "gpu0.fabric") == Approx(1));
  CHECK(share(m, peer, "gpu1.hbm") == Approx(0.2));
  CHECK(m.demand(Copy{gpu0, gpu0, 50_GB}).alone.value() == Approx(1));
}

TEST_CASE("reads and writes of a path are two sides of one resource", "[machine]") {
  const Machine m = toy::machine();
  const Demand read = m.demand(FileIo{Direction::read, 0, host0, 8_GB});
  const Demand write = m.demand(FileIo{Direction::write, 0, host1, 8_GB});
  CHECK(read.alone.value() == Approx(2));
  CHECK(write.alone.value() == Approx(4));
  CHECK(read.shares[0].side == 0);
  CHECK(write.shares[0].side == 1);
  CHECK(read.shares[0].resource == write.shares[0].resource);
  CHECK(share(m, read, "numa0.dram") == Approx(0.1));
  // Mixed, each gigabyte costs as long as at 2 and 1 GB/s: twice the pure cost.
  const Resource& nvme = m.resources()[index(read.shares[0].resource)];
  CHECK(nvme.mixed_cost == std::array{2.0, 2.0});
}

TEST_CASE("a path reaches its rate with enough bytes in flight, within a client's limit",
          "[machine]") {
  StoragePath path = toy::drive();
  path.block_half_size = 4_MB;
  path.latency = 1_ms;
  path.client_write = 1_GBps;
  const Machine m = toy::machine({toy::gpu()}, path);
  FileIo io{Direction::read, 0, host0, 4_GB, 1_MB, 2, 2};  // 4 MB in flight: half of 4 GB/s
  CHECK(m.demand(io).alone.value() == Approx(2));
  CHECK(m.demand(io).latency == 1_ms);
  CHECK(share(m, m.demand(io), "nvme") == Approx(0.5));
  io.threads = 6;  // 12 MB: three quarters
  CHECK(m.demand(io).alone.value() == Approx(4.0 / 3));
  io.direction = Direction::write;  // 1.5 GB/s by the drive, 1 GB/s by the client
  CHECK(m.demand(io).alone.value() == Approx(4));
  CHECK(share(m, m.demand(io), "nvme") == Approx(0.5));
  io.direction = Direction::read;
  io.bytes = 1_MB;  // one block in flight: a fifth of 4 GB/s
  CHECK(m.demand(io).alone.value() == Approx(1.25e-3));
}

TEST_CASE("a file that goes to GPU memory crosses the link and not DRAM", "[machine]") {
  StoragePath path = toy::drive();
  path.gpudirect = true;
  Host host = toy::host();
  host.roots = {{"plx0", 5_GBps, 5_GBps}};
  Gpu gpu = toy::gpu();
  gpu.root = 0;
  const Machine m = toy::machine({gpu, gpu}, path, toy::fabric(), host);
  const Demand d = m.demand(FileIo{Direction::read, 0, gpu1, 4_GB});
  CHECK(d.alone.value() == Approx(1));
  CHECK(share(m, d, "nvme") == Approx(1));
  CHECK(share(m, d, "plx0.h2d") == Approx(0.8));
  CHECK(share(m, d, "gpu1.h2d") == Approx(0.4));
  CHECK(share(m, d, "gpu1.hbm") == Approx(0.04));
  CHECK(share(m, d, "numa0.dram") == 0);
  CHECK(d.share_count == 4);
  // 2 GB/s of writes.
  CHECK(share(m, m.demand(FileIo{Direction::write, 0, gpu1, 4_GB}), "gpu1.d2h") == Approx(0.2));
}

TEST_CASE("a shared file system divides among the nodes", "[machine]") {
  StoragePath path = toy::drive();
  path.is_shared = true;
  Fabric fabric = toy::fabric();
  fabric.nodes = 4;
  fabric.per_node = 10_GBps;
  const Machine m = toy::machine({toy::gpu()}, path, fabric);
  CHECK(m.demand(FileIo{Direction::read, 0, host0, 4_GB}).alone.value() == Approx(4));
  CHECK(share(m, m.demand(FileIo{Direction::read, 0, host0, 4_GB}), "nvme") == Approx(1));
}

TEST_CASE("a write cache tires its path after its bytes", "[machine]") {
  StoragePath path = toy::drive();
  path.cache = 10_GB;
  path.write_sustained = 0.5_GBps;
  path.cache_recovery = 1_GBps;
  const Machine m = toy::machine({toy::gpu()}, path);
  const Resource& nvme = m.resources().back();
  CHECK(nvme.name == "nvme");
  CHECK(nvme.burst.value() == Approx(5));
  CHECK(nvme.tired_cost == Approx(4));
  CHECK(nvme.recovery == Approx(0.5));
}

TEST_CASE("adam takes the cores of its rank and 24 bytes a parameter plus the gradient",
          "[machine]") {
  const Machine m = toy::machine();
  const Demand d = m.demand(AdamStep{1, 2'000'000'000});
  CHECK(d.alone.value() == Approx(2));
  CHECK(d.amount == Approx(56e9));
  CHECK(share(m, d, "numa1.cores") == Approx(1));
  CHECK(share(m, d, "numa1.dram") == Approx(0.7));  // 28 of 40 GB/s
  CHECK(m.demand(AdamStep{0, 1'000'000'000, DType::bf16}).amount == Approx(26e9));
  // bf16 to fp32: 6 B an element at 2e9/s.
  CHECK(share(m, m.demand(Cast{0, 1'000'000'000}), "numa0.dram") == Approx(0.3));
}

TEST_CASE("an update that DRAM cannot feed is as fast as DRAM", "[machine]") {
  Host host = toy::host();
  host.adam_rate = 2e9;  // 56 GB/s wanted, 40 there
  const Machine m = toy::machine({toy::gpu()}, toy::drive(), toy::fabric(), host);
  CHECK(m.demand(AdamStep{0, 1'000'000'000}).alone.value() == Approx(0.7));
}

TEST_CASE("two ranks of a published socket collide as the logs show", "[machine]") {
  // 6.15 Gparam/s alone, 3.54 each when two update at once: together 7.08e9 · 28 B = 198 GB/s, the
  // bandwidth of the NUMA node. Alone a rank takes 172.2 / 198 of it.
  Host host = toy::host();
  host.numa_nodes = 1;
  host.adam_rate = 6.15e9;
  host.ranks_per_numa = 2;
  host.memory_bandwidth = 198_GBps;
  const Machine m = toy::machine({toy::gpu(), toy::gpu()}, toy::drive(), toy::fabric(), host);
  const Demand d = m.demand(AdamStep{0, 6'150'000'000});
  CHECK(d.alone.value() == Approx(1));
  CHECK(share(m, d, "numa0.cores") == Approx(0.5));
  const double dram = share(m, d, "numa0.dram");
  CHECK(dram == Approx(172.2 / 198));
  CHECK(6.15 * 0.5 / dram == Approx(3.54).epsilon(2e-3));
}

TEST_CASE("collectives of a node cost their ring at the bus bandwidth", "[machine]") {
  const Machine m = toy::machine();
  const auto seconds = [&m](CollectiveKind kind) {
    return m.demand(Collective{kind, 40_GB, 2, 0, 2}).alone.value();
  };
  // Half of 40 GB through each GPU at 20 GB/s.
  CHECK(seconds(CollectiveKind::all_gather) == Approx(1));
  CHECK(seconds(CollectiveKind::reduce_scatter) == Approx(1));
  CHECK(seconds(CollectiveKind::all_to_all) == Approx(1));
  CHECK(seconds(CollectiveKind::all_reduce) == Approx(2));
  CHECK(seconds(CollectiveKind::broadcast) == Approx(2));
  const Demand d = m.demand(Collective{CollectiveKind::all_reduce, 40_GB, 2, 0, 2});
  CHECK(share(m, d, "gpu0.fabric") == 1);
  CHECK(share(m, d, "gpu1.fabric") == 1);
  CHECK(m.demand(Collective{CollectiveKind::all_reduce, 40_GB, 1, 1, 1}).alone == 0_s);
}

TEST_CASE("a small collective reaches a part of the bus bandwidth", "[machine]") {
  Fabric fabric = toy::fabric();
  fabric.efficiency = Curve({{2e9, 0.25}, {8e9, 0.75}});
  const Machine m = toy::machine({toy::gpu(), toy::gpu()}, toy::drive(), fabric);
  const auto seconds = [&m](Bytes bytes) {
    return m.demand(Collective{CollectiveKind::all_gather, bytes, 2, 0, 2}).alone.value();
  };
  // Half of the buffer through each GPU, at 20 GB/s times 0.25, 0.5 (the middle in log size) and
  // 0.75; beyond the ends these hold.
  CHECK(seconds(1_GB) == Approx(0.5 / 5));
  CHECK(seconds(4_GB) == Approx(2.0 / 10));
  CHECK(seconds(30_GB) == Approx(15.0 / 15));
  // It leaves the rest of the links to others.
  const Demand d = m.demand(Collective{CollectiveKind::all_gather, 4_GB, 2, 0, 2});
  CHECK(share(m, d, "gpu0.fabric") == Approx(0.5));
}

TEST_CASE("a collective takes a part of the cores of its GPUs", "[machine]") {
  Gpu gpu = toy::gpu();
  gpu.collective_compute_fraction = 0.25;
  const Machine m = toy::machine({gpu, gpu});
  const Demand d = m.demand(Collective{CollectiveKind::all_gather, 40_GB, 2, 0, 2});
  CHECK(share(m, d, "gpu0.compute") == Approx(0.25));
  CHECK(share(m, d, "gpu1.compute") == Approx(0.25));
}

TEST_CASE("a collective that leaves the node is as fast as the network", "[machine]") {
  Fabric fabric = toy::fabric();
  fabric.nodes = 2;
  fabric.per_node = 5_GBps;
  fabric.latency = 1_ms;
  fabric.network_latency = 2_ms;
  const Machine m = toy::machine({toy::gpu(), toy::gpu()}, toy::drive(), fabric);
  // Three quarters of 40 GB at 5 GB/s.
  const Demand d = m.demand(Collective{CollectiveKind::all_gather, 40_GB, 4, 0, 2});
  CHECK(d.alone.value() == Approx(6));
  CHECK(d.latency.value() == Approx(3e-3));
  CHECK(share(m, d, "network.out") == Approx(1));
  CHECK(share(m, d, "network.in") == Approx(1));
  CHECK(share(m, d, "gpu0.fabric") == Approx(0.25));
  // All to all: each of two GPUs sends half of 40 GB out: 40 GB at 5 GB/s.
  CHECK(m.demand(Collective{CollectiveKind::all_to_all, 40_GB, 4, 0, 2}).alone.value() ==
        Approx(8));
}

TEST_CASE("an eight-GPU collective across nodes fits a demand", "[machine]") {
  Gpu gpu = toy::gpu();
  gpu.collective_compute_fraction = 0.1;
  Fabric fabric = toy::fabric();
  fabric.nodes = 2;
  fabric.per_node = 50_GBps;
  const Machine m = toy::machine(std::vector<Gpu>(8, gpu), toy::drive(), fabric);
  const Demand d = m.demand(Collective{CollectiveKind::all_reduce, 16_GB, 16, 0, 8});
  CHECK(d.share_count == 18);
  CHECK(share(m, d, "network.out") == Approx(0.4));
}

TEST_CASE("works without bytes cost nothing", "[machine]") {
  const Machine m = toy::machine();
  for (const Work& w : {Work{Copy{host0, gpu0, 0_B}}, Work{FileIo{}}, Work{AdamStep{}},
                        Work{Cast{}}, Work{Collective{CollectiveKind::broadcast, 0_B, 2, 0, 2}}}) {
    CHECK(m.demand(w).alone == 0_s);
    CHECK(m.demand(w).used().empty());
  }
}

TEST_CASE("ranks spread over NUMA nodes in order", "[machine]") {
  const Machine m = toy::machine(std::vector<Gpu>(4, toy::gpu()));
  CHECK(m.numa_of_rank(0) == 0);
  CHECK(m.numa_of_rank(1) == 0);
  CHECK(m.numa_of_rank(2) == 1);
  CHECK(m.numa_of_rank(3) == 1);
}

TEST_CASE("works on devices that the node does not have are our bug", "[machine]") {
  const Machine m = toy::machine();
  CHECK_THROWS_AS(m.demand(Compute{2, {Elementwise{1_GB, 1}}}), std::logic_error);
  CHECK_THROWS_AS(m.demand(Copy{host0, {Tier::gpu, 2}, 1_GB}), std::logic_error);
  CHECK_THROWS_AS(m.demand(Copy{{Tier::host, 2}, gpu0, 1_GB}), std::logic_error);
  CHECK_THROWS_AS(m.demand(Copy{{Tier::storage, 0}, gpu0, 1_GB}), std::logic_error);
  CHECK_THROWS_AS(m.demand(FileIo{Direction::read, 1, host0, 1_GB}), std::logic_error);
  CHECK_THROWS_AS(m.demand(FileIo{Direction::read, 0, gpu0, 1_GB}), std::logic_error);
  CHECK_THROWS_AS(m.demand(Collective{CollectiveKind::all_reduce, 1_GB, 4, 0, 4}),
                  std::logic_error);
  CHECK_THROWS_AS(m.demand(Collective{CollectiveKind::all_reduce, 1_GB, 4, 0, 2}),
                  std::logic_error);
  CHECK_THROWS_AS(m.demand(AdamStep{2, 1}), std::logic_error);
  CHECK_THROWS_AS(toy::machine({}), std::logic_error);
}
