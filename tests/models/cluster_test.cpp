// Several nodes of a cluster at once, and nodes of which a part stands for the whole.
#include <algorithm>

#include "models/base/error.hpp"
#include "models/machine.hpp"
#include "tests/catch.hpp"
#include "tests/models/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using toy::share;

namespace {

constexpr Place gpu(std::uint16_t i) { return {Tier::gpu, i}; }
constexpr Place host(std::uint16_t i) { return {Tier::host, i}; }

/// Eight nodes of 16 GB/s, each direction.
Fabric network() {
  Fabric f = toy::fabric();
  f.latency = 1_ms;
  f.nodes = 8;
  f.per_node = 16_GBps;
  f.network_latency = 2_ms;
  return f;
}

/// Nodes of `gpus` GPUs, two NUMA nodes and a drive.
Machine cluster(std::size_t gpus, const Fabric& fabric = network(), const Host& cpu = toy::host()) {
  return toy::machine(std::vector<Gpu>(gpus, toy::gpu()), toy::drive(), fabric, cpu);
}

std::vector<std::string> names(const Machine& m) {
  std::vector<std::string> list;
  for (const Resource& r : m.resources()) list.push_back(r.name);
  return list;
}

bool has(const Machine& m, const std::string& name) {
  const auto list = names(m);
  return std::ranges::find(list, name) != list.end();
}

}  // namespace

TEST_CASE("one whole node is the machine itself", "[cluster]") {
  const Machine m = cluster(4);
  const Machine whole = m.part(1, 4);
  CHECK(names(whole) == names(m));
  CHECK(whole.fold() == 1);
  CHECK(whole.host().memory == m.host().memory);
  for (const Work& work : {Work{Copy{host(1), gpu(3), 1_GB}}, Work{AdamStep{2, 1'000'000}},
                           Work{FileIo{Direction::write, 0, host(0), 1_GB}},
                           Work{Collective{CollectiveKind::all_reduce, 1_GB, 32, 0, 4}}}) {
    const Demand a = whole.demand(work), b = m.demand(work);
    CHECK(a.alone == b.alone);
    CHECK(std::ranges::equal(a.used(), b.used()));
  }
}

TEST_CASE("GPUs, NUMA nodes and paths are counted through the nodes", "[cluster]") {
  const Machine m = cluster(4).part(2, 2, 1);
  CHECK(m.nodes() == 8);
  CHECK(m.nodes_here() == 2);
  CHECK(m.gpus_per_node() == 2);
  CHECK(m.gpu_count() == 4);
  CHECK(m.node_of_gpu(1) == 0);
  CHECK(m.node_of_gpu(2) == 1);
  CHECK(m.node_of(host(3)) == 1);
  CHECK(m.paths_per_node() == 1);
  CHECK(m.path_of(1, 0) == 1);
  CHECK(m.paths()[1].name == "node1.nvme");
  CHECK(names(m) == std::vector<std::string>{
                        "gpu0.compute",      "gpu0.hbm",        "gpu0.h2d",     "gpu0.d2h",
                        "gpu0.fabric",       "gpu1.compute",    "gpu1.hbm",     "gpu1.h2d",
                        "gpu1.d2h",          "gpu1.fabric",     "numa0.cores",  "numa0.dram",
                        "numa1.cores",       "numa1.dram",      "node0.nvme",   "node0.network.out",
                        "node0.network.in",  "gpu2.compute",    "gpu2.hbm",     "gpu2.h2d",
                        "gpu2.d2h",          "gpu2.fabric",     "gpu3.compute", "gpu3.hbm",
                        "gpu3.h2d",          "gpu3.d2h",        "gpu3.fabric",  "numa2.cores",
                        "numa2.dram",        "numa3.cores",     "numa3.dram",   "node1.nvme",
                        "node1.network.out", "node1.network.in"});
  CHECK(share(m, m.demand(FileIo{Direction::read, 1, host(2), 1_GB}), "node1.nvme") == Approx(1));
  CHECK(share(m, m.demand(AdamStep{2, 1'000'000}), "numa2.cores") == Approx(1));
}

TEST_CASE("ranks of every node spread over its NUMA nodes", "[cluster]") {
  // Four GPUs and two NUMA nodes a node: GPUs 0, 1 | 2, 3.
  const Machine all = cluster(4).part(2, 4);
  for (std::uint16_t rank = 0; rank < 8; ++rank) CHECK(all.numa_of_rank(rank) == rank / 2);
  // Two that stand for two each are GPUs 0 and 2 of their node; two idle ones are 2 and 3.
  const Machine folded = cluster(4).part(2, 2), first = cluster(4).part(2, 2, 1);
  CHECK(folded.numa_of_rank(3) == 3);
  CHECK(first.numa_of_rank(3) == 2);
}

TEST_CASE("a copy between nodes crosses both networks at the rate of an adapter", "[cluster]") {
  const Machine m = cluster(4).part(2, 4);
  // 16 GB/s for four GPUs: 4 GB/s. Of the node's 16, the copy takes a quarter; of HBM a 25th.
  const Demand d = m.demand(Copy{gpu(1), gpu(4), 8_GB});
  CHECK(d.alone.value() == Approx(2));
  CHECK(d.latency == 2_ms);
  CHECK(share(m, d, "node0.network.out") == Approx(0.25));
  CHECK(share(m, d, "node1.network.in") == Approx(0.25));
  CHECK(share(m, d, "gpu1.hbm") == Approx(0.04));
  CHECK(share(m, d, "gpu4.hbm") == Approx(0.04));
  CHECK(d.share_count == 4);
  // Within the node: 20 GB/s of the fabric, and its latency.
  const Demand inside = m.demand(Copy{gpu(4), gpu(5), 20_GB});
  CHECK(inside.alone.value() == Approx(1));
  CHECK(inside.latency == 1_ms);
  CHECK(share(m, inside, "gpu4.fabric") == Approx(1));
}

TEST_CASE("copies of a node share its network, each direction for itself", "[cluster]") {
  Fabric fabric = network();
  fabric.per_nic = 16_GBps;  // one adapter for the node
  const Machine m = cluster(2, fabric).part(3, 2);
  const Demand there = m.demand(Copy{gpu(0), gpu(2), 16_GB});
  const Demand elsewhere = m.demand(Copy{gpu(1), gpu(4), 16_GB});
  const Demand back = m.demand(Copy{gpu(3), gpu(1), 16_GB});
  CHECK(there.alone.value() == Approx(1));
  // Two that leave node 0 each want all of it; one that enters uses the other direction.
  CHECK(share(m, there, "node0.network.out") == Approx(1));
  CHECK(share(m, elsewhere, "node0.network.out") == Approx(1));
  CHECK(share(m, back, "node0.network.out") == 0);
  CHECK(share(m, back, "node0.network.in") == Approx(1));
}

TEST_CASE("a GPU that stands for others has its part of the network", "[cluster]") {
  // Four tensor-parallel ranks of a node send at 4 GB/s each: the node's 16 are busy. One of them
  // in place of all sends at 4 GB/s through its quarter.
  const Machine all = cluster(4).part(2, 4), one = cluster(4).part(2, 1);
  const Demand unfolded = all.demand(Copy{gpu(0), gpu(4), 4_GB});
  const Demand folded = one.demand(Copy{gpu(0), gpu(1), 4_GB});
  CHECK(folded.alone == unfolded.alone);
  CHECK(share(all, unfolded, "node0.network.out") == Approx(0.25));
  CHECK(share(one, folded, "node0.network.out") == Approx(1));
  // Two of four GPUs at work, folded: of 16 GB/s a half is its own; an adapter still carries 4.
  const Machine half = cluster(4).part(2, 1, 2);
  const Demand d = half.demand(Copy{gpu(0), gpu(1), 4_GB});
  CHECK(d.alone == unfolded.alone);
  CHECK(share(half, d, "node0.network.out") == Approx(0.5));
}

TEST_CASE("a GPU that stands for others has its part of storage, DRAM, cores and memory",
          "[cluster]") {
  Host cpu = toy::host();
  cpu.ranks_per_numa = 2;
  cpu.base_use = 8_GB;
  // Four GPUs, two on each NUMA node; one stands for all, and on NUMA node 0 for two.
  const Machine all = cluster(4, network(), cpu).part(1, 4), one = all.part(1, 1);
  CHECK(one.fold() == 4);
  CHECK(one.host().memory == 25_GB);
  CHECK(one.host().base_use == 2_GB);
  CHECK(one.paths()[0].capacity == 250_GB);
  // 4 GB/s of reads among four: 1 GB/s.
  CHECK(one.demand(FileIo{Direction::read, 0, host(0), 1_GB}).alone.value() == Approx(1));
  // A copy at 10 GB/s is a half of its half of 40 GB/s.
  CHECK(share(one, one.demand(Copy{host(0), gpu(0), 1_GB}), "numa0.dram") == Approx(0.5));
  // Two ranks exhaust the cores of a NUMA node, this one and the one that it stands for. DRAM:
  // 28 GB/s wanted of 20, so 1.4 s for 1e9 parameters and 20/28 of the cores.
  const Demand adam = one.demand(AdamStep{0, 1'000'000'000});
  CHECK(adam.alone.value() == Approx(1.4));
  CHECK(share(one, adam, "numa0.dram") == Approx(1));
  CHECK(share(one, adam, "numa0.cores") == Approx(20.0 / 28));
}

TEST_CASE("a root port is shared by those that stand behind it", "[cluster]") {
  Host cpu = toy::host();
  cpu.roots = {{"plx0", 10_GBps, 10_GBps}, {"plx1", 10_GBps, 10_GBps}};
  std::vector<Gpu> gpus(4, toy::gpu());
  for (std::size_t i = 0; i < 4; ++i) gpus[i].root = i < 2 ? 0 : 1;
  const Machine m = toy::machine(gpus, toy::drive(), network(), cpu);
  // One GPU of four: its port serves two, so 5 of 10 GB/s. The second of two is GPU 2, at plx1.
  CHECK(m.part(1, 1).demand(Copy{host(0), gpu(0), 10_GB}).alone.value() == Approx(2));
  const Machine two = m.part(2, 2);
  const Demand d = two.demand(Copy{host(2), gpu(3), 10_GB});
  CHECK(d.alone.value() == Approx(2));
  CHECK(share(two, d, "node1.plx1.h2d") == Approx(1));
  // Alone on their ports nothing is taken from them.
  CHECK(m.part(1, 2, 1).demand(Copy{host(0), gpu(1), 10_GB}).alone.value() == Approx(1));
}

TEST_CASE("a folded group within a node costs what the whole group costs", "[collective]") {
  const Machine all = cluster(8).part(1, 8), one = cluster(8).part(1, 1);
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    const Demand folded = one.demand(Collective{kind, 40_GB, 8, 0, 1, 1, 8});
    const Demand whole = all.demand(Collective{kind, 40_GB, 8, 0, 8});
    CHECK(folded.alone == whole.alone);
    CHECK(folded.latency == whole.latency);
    CHECK(share(one, folded, "gpu0.fabric") == 1);
    CHECK(folded.share_count == 1);
  }
  // Seven eighths of 40 GB at 20 GB/s, twice.
  const Demand d = one.demand(Collective{CollectiveKind::all_reduce, 40_GB, 8, 0, 1, 1, 8});
  CHECK(d.alone.value() == Approx(3.5));
}

TEST_CASE("a folded group that leaves the node takes the part of the network that is its own",
          "[collective]") {
  // 16 ranks on two nodes: 15/16 of 32 GB at 16 GB/s, and the whole network of the node.
  const Machine one = cluster(8).part(1, 1);
  const Demand ring = one.demand(Collective{CollectiveKind::all_gather, 32_GB, 16, 0, 1, 1, 8});
  CHECK(ring.alone.value() == Approx(30.0 / 16));
  CHECK(share(one, ring, "network.out") == Approx(1));
  CHECK(share(one, ring, "network.in") == Approx(1));
  CHECK(share(one, ring, "gpu0.fabric") == Approx(0.8));
  // Each of eight sends half of its 32 GB to the other node: 128 GB at 16 GB/s.
  CHECK(one.demand(Collective{CollectiveKind::all_to_all, 32_GB, 16, 0, 1, 1, 8}).alone.value() ==
        Approx(8));
}

TEST_CASE("a strided group takes every n-th GPU and an adapter for each", "[collective]") {
  // Four GPUs a node, tensor parallel by two: data-parallel groups {0, 2} and {1, 3} of each node,
  // 16 ranks on eight nodes. Two adapters carry 8 of the node's 16 GB/s.
  const Machine m = cluster(4);
  const Demand d = m.demand(Collective{CollectiveKind::reduce_scatter, 32_GB, 16, 1, 2, 2});
  CHECK(d.alone.value() == Approx(30.0 / 8));
  CHECK(share(m, d, "gpu1.fabric") == Approx(0.4));
  CHECK(share(m, d, "gpu3.fabric") == Approx(0.4));
  CHECK(share(m, d, "gpu0.fabric") == 0);
  CHECK(share(m, d, "network.out") == Approx(0.5));
  // One rank on each of two nodes: 1/2 of 32 GB at 4 GB/s, and nothing of the fabric.
  const Demand lone = m.demand(Collective{CollectiveKind::reduce_scatter, 32_GB, 2, 3, 1});
  CHECK(lone.alone.value() == Approx(4));
  CHECK(share(m, lone, "gpu3.fabric") == 0);
  // Folded by two, GPU 0 in place of 0 and 1: both groups leave at once, through what is theirs.
  const Machine folded = m.part(1, 2);
  const Demand f = folded.demand(Collective{CollectiveKind::reduce_scatter, 32_GB, 16, 0, 2});
  CHECK(f.alone == d.alone);
  CHECK(share(folded, f, "network.out") == Approx(1));
}

TEST_CASE("a group with members on several simulated nodes takes the network of each",
          "[collective]") {
  // First and last stage share an embedding: 1/2 · 2 of 8 GB at 4 GB/s.
  const Machine m = cluster(4).part(3, 4);
  const Demand d = m.demand(Collective{CollectiveKind::all_reduce, 8_GB, 2, 0, 2, 8, 1});
  CHECK(d.alone.value() == Approx(2));
  CHECK(d.latency == 3_ms);
  CHECK(share(m, d, "node0.network.out") == Approx(0.25));
  CHECK(share(m, d, "node2.network.in") == Approx(0.25));
  CHECK(share(m, d, "node1.network.out") == 0);
  CHECK(share(m, d, "gpu0.fabric") == 0);
}

TEST_CASE("groups and works that the machine cannot hold are our bug", "[cluster]") {
  const Machine m = cluster(4).part(2, 4);
  const auto group = [&m](std::int32_t ranks, std::uint16_t first, std::uint16_t gpus,
                          std::uint16_t stride, std::uint16_t per_node) {
    return m.demand(
        Collective{CollectiveKind::all_reduce, 1_GB, ranks, first, gpus, stride, per_node});
  };
  CHECK_THROWS_AS(group(2, 7, 2, 1, 0), std::logic_error);   // GPU 8
  CHECK_THROWS_AS(group(2, 3, 2, 1, 0), std::logic_error);   // GPUs 3 | 4, said to be on one node
  CHECK_THROWS_AS(group(8, 0, 4, 1, 2), std::logic_error);   // four on a node of two
  CHECK_THROWS_AS(group(8, 0, 4, 1, 8), std::logic_error);   // eight on a node of four
  CHECK_THROWS_AS(group(33, 0, 4, 1, 4), std::logic_error);  // nine nodes
  CHECK_THROWS_AS(group(2, 0, 2, 0, 0), std::logic_error);   // one GPU twice
  CHECK_THROWS_AS(m.demand(Copy{host(0), gpu(4), 1_GB}), std::logic_error);
  CHECK_THROWS_AS(m.demand(Copy{host(0), host(2), 1_GB}), std::logic_error);
  CHECK_THROWS_AS(m.demand(FileIo{Direction::read, 1, host(0), 1_GB}), std::logic_error);
  CHECK_THROWS_AS(m.part(1, 4), std::logic_error);
  CHECK_THROWS_AS(cluster(4).part(9, 4), std::logic_error);
  CHECK_THROWS_AS(cluster(4).part(1, 3), std::logic_error);
  CHECK_THROWS_AS(cluster(4).part(1, 2, 3), std::logic_error);
  CHECK_THROWS_AS(m.path_of(2, 0), std::logic_error);
}

TEST_CASE("sixty-four nodes of eight GPUs are simulated together", "[cluster]") {
  Fabric fabric = network();
  fabric.nodes = 64;
  const Machine m = cluster(8, fabric).part(64, 8);
  CHECK(m.gpu_count() == 512);
  CHECK(m.numa_of_rank(511) == 127);
  // Five resources a GPU, two a NUMA node, a drive and the network's two directions.
  CHECK(m.resources().size() == 64 * (8 * 5 + 2 * 2 + 1 + 2));
  CHECK(has(m, "node63.network.in"));
  // Eight members on four nodes: compute is not taken here, links of eight, four networks.
  const Demand d = m.demand(Collective{CollectiveKind::all_reduce, 1_GB, 8, 496, 8, 1, 8});
  CHECK(d.share_count == 8);
}

TEST_CASE("a group of eight GPUs on four nodes fits a demand", "[cluster]") {
  Gpu device = toy::gpu();
  device.collective_compute_fraction = 0.1;
  const Machine m = toy::machine(std::vector<Gpu>(8, device), toy::drive(), network()).part(4, 8);
  // GPUs 0, 4 | 8, 12 | 16, 20 | 24, 28: compute and fabric of each, in and out of four nodes.
  const Demand d = m.demand(Collective{CollectiveKind::all_reduce, 1_GB, 8, 0, 8, 4, 2});
  CHECK(d.share_count == Demand::most_shares);
}

TEST_CASE("a collective keeps stride and ranks of a node through its text form", "[work]") {
  const Collective c{CollectiveKind::all_gather, 3_GiB, 16, 1, 2, 4, 8};
  CHECK(decode_work(encode(c)) == Work{c});
  CHECK(encode(c) == "collective 0 3221225472 16 1 2 4 8");
  Collective other = c;
  other.stride = 2;
  CHECK(hash_of(other) != hash_of(c));
  other = c;
  other.per_node = 2;
  CHECK(hash_of(other) != hash_of(c));
  CHECK(to_text(c) == "all-gather 3 GiB over 16 ranks, 8 a node, every 4 GPUs from gpu1");
  CHECK_THROWS_AS(decode_work("collective 0 3221225472 16 1 2 4"), InputError);
  CHECK(c.leaves_node());
  CHECK_FALSE(Collective{CollectiveKind::all_gather, 3_GiB, 8, 0, 1, 1, 8}.leaves_node());
}
