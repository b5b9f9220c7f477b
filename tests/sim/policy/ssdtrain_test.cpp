// What SSDTrain does with each tensor, on networks of a few operators. The drive writes 2 GB/s and
// reads 4 GB/s; a block takes 1 s forward, 1 s backward and saves 2 GB unless said otherwise, so a
// store takes 1 s and a load 0.5 s.
#include "sim/policy/ssdtrain.hpp"

#include "tests/catch.hpp"
#include "tests/models/toy.hpp"
#include "tests/sim/policy/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using toy::block;
using toy::Question;
using toy::Run;
using toy::saved;

namespace {

// Everything moves from the first iteration on, one tensor after another.
const std::string plain = "adaptive: false, record_first: false, store_workers: 1, load_workers: 1";
// As FlashTrain's defaults, but from the first iteration on and without the adaptive rule.
const std::string flash = "adaptive: false, record_first: false";

std::string ssd(const std::string& keys, const std::string& to = "nvme") {
  return "{activations: {name: ssdtrain, to: " + to + ", threshold: 1, " + keys + "}}";
}

LayerGraph blocks(int count, double forward = 1) {
  std::vector<Layer> layers;
  for (int i = 0; i < count; ++i) {
    layers.push_back(
        block({std::string(1, static_cast<char>('a' + i)), forward, 1, {saved(2_GB)}}));
  }
  return toy::graph(std::move(layers));
}

Run run(const LayerGraph& graph, const std::string& policy, std::int32_t iterations = 1) {
  return toy::run({.graph = graph, .policy = policy, .iterations = iterations});
}

double written(const Run& run, int iteration = 0) {
  return run.file_bytes(Direction::write, iteration) / 1e9;
}
double read(const Run& run, int iteration = 0) {
  return run.file_bytes(Direction::read, iteration) / 1e9;
}

// Bytes that pass a resource of `capacity` bytes per second.
double through(const Run& run, const std::string& resource, BytesPerSecond capacity) {
  double bytes = 0;
  for (std::uint32_t t = 0; t < run.plan.size(); ++t) {
    if (!run.is_run(TaskId{t})) continue;
    const Demand& d = run.demands[index(run.plan.tasks[t].work)];
    bytes += toy::share(run.machine, d, resource) * d.alone.value() * capacity.value();
  }
  return bytes / 1e9;
}

}  // namespace

TEST_CASE("a tensor is stored when it has been saved and leaves the GPU when it is written",
          "[ssdtrain]") {
  const Run r = run(blocks(3), ssd(plain + ", forwarding: false, prefetch: false"));
  const auto stores = r.ran("store"), loads = r.ran("load"), backward = r.ran("backward");
  REQUIRE(stores.size() == 3);
  REQUIRE(loads.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    INFO(i);
    // Forward 0-1, 1-2, 2-3; each store follows.
    CHECK(r.start(stores[i]) == Approx(1.0 + static_cast<double>(i)));
    CHECK(r.end(stores[i]) == Approx(2.0 + static_cast<double>(i)));
    // The launch thread waits for the last store, at 4, and then loads one after another, ahead of
    // the GPU, which starts when the first has come: 4.5.
    CHECK(r.start(loads[i]) == Approx(4.0 + 0.5 * static_cast<double>(i)));
    CHECK(r.start(backward[i]) == Approx(4.5 + static_cast<double>(i)));
  }
  CHECK(r.makespan() == Approx(7.5));
  // a lives from 0 to 2, b from 1 to 3, c from 2 to 4: two at the same time.
  CHECK(r.peak("gpu0", "activations to store") == 4e9);
  // c from 4 to 5.5, b from 4.5 to 6.5, a from 5 to 7.5: three.
  CHECK(r.peak("gpu0", "loaded activations") == 6e9);
}

TEST_CASE("six workers take the tensors in the order in which they were saved", "[ssdtrain]") {
  // One operator saves eight tensors of 1 GB. Six share 2 GB/s: from 1 to 4. Then two: to 5.
  std::vector<SavedTensor> eight;
  for (std::int32_t i = 0; i < 8; ++i) eight.push_back(saved(1_GB, i + 1));
  const LayerGraph graph = toy::graph({block({"a", 1, 1, eight})});
  const Run r = run(graph, ssd(flash));
  const auto stores = r.ran("store");
  REQUIRE(stores.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    INFO(i);
    CHECK(r.start(stores[i]) == Approx(i < 6 ? 1 : 4));
    CHECK(r.end(stores[i]) == Approx(i < 6 ? 4 : 5));
  }
  SECTION("none had been written when backward began, so none is read") {
    CHECK(read(r) == 0);
    CHECK(r.start(r.ran("backward").at(0)) == Approx(1));
  }
  SECTION("cancelling drops the two that had not begun") {
    CHECK(written(run(graph, ssd(flash + ", cancel_forwarded: true"))) == Approx(6));
  }
}

TEST_CASE("a tensor whose store has not ended is forwarded", "[ssdtrain]") {
  // Forwards of 0.6 s, one worker: stores at 0.6-1.6, 1.6-2.6, 2.6-3.6. Forward ends at 1.8: a is
  // written, b is being written, c waits.
  const LayerGraph graph = blocks(3, 0.6);
  SECTION("as coded: what is forwarded is written all the same, and not read") {
    const Run r = run(graph, ssd(plain));
    CHECK(written(r) == Approx(6));
    CHECK(read(r) == Approx(6 - 4));
    // No load delays the first two.
    CHECK(r.start(r.ran("backward").at(0)) == Approx(1.8));
    CHECK(r.start(r.ran("backward").at(1)) == Approx(2.8));
  }
  SECTION("as described: the store that waits is cancelled") {
    const Run r = run(graph, ssd(plain + ", cancel_forwarded: true"));
    CHECK(written(r) == Approx(4));
    CHECK(read(r) == Approx(2));
  }
  SECTION("switched off: everything is read") {
    const Run r = run(graph, ssd(plain + ", forwarding: false"));
    CHECK(written(r) == Approx(6));
    CHECK(read(r) == Approx(6));
    // c is there when its store has ended, later than 3.6, and 0.5 s more.
    CHECK(r.start(r.ran("backward").at(0)) > 4.1 - 1e-9);
  }
}

TEST_CASE("reaching a chunk's first operator queues the loads of the others", "[ssdtrain]") {
  // Forward 2 s a block; d saves nothing, so the drive is idle when backward begins at 8.
  LayerGraph graph = blocks(4, 2);
  graph.layers[3].operators[0].saved.clear();
  const Run r = run(graph, ssd(flash));
  const auto loads = r.ran("load");
  REQUIRE(loads.size() == 3);
  // Chunks from the end: d c | b a. d is launched at 8: c by the pool, 8-8.5. c is launched when it
  // is there; b leads the next chunk: a by the pool, b by the thread itself, half the drive each.
  CHECK(r.lane(loads[0]) == "rank0.load");
  CHECK(r.start(loads[0]) == Approx(8));
  CHECK(r.end(loads[0]) == Approx(8.5));
  CHECK(r.lane(loads[1]) == "rank0.load");
  CHECK(r.lane(loads[2]) == "rank0.main");
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(r.start(loads[i]) == Approx(8.5));
    CHECK(r.end(loads[i]) == Approx(9.5));
  }
  // All of it behind the backwards of d (8-9) and c (9-10).
  CHECK(r.makespan() == Approx(12));
  SECTION("larger chunks leave less to the thread") {
    const Run whole = run(graph, ssd(flash + ", prefetch_chunk: 4"));
    for (const TaskId t : whole.ran("load")) CHECK(whole.lane(t) == "rank0.load");
  }
  SECTION("without prefetching the thread loads everything") {
    const Run none = run(graph, ssd(flash + ", prefetch: false"));
    for (const TaskId t : none.ran("load")) CHECK(none.lane(t) == "rank0.main");
  }
}

TEST_CASE("small and excluded tensors stay", "[ssdtrain]") {
  LayerGraph graph = blocks(3);  // 1e9 elements each
  graph.layers[0].operators[0].saved[0].elements = (1 << 23) - 1;
  graph.layers[1].operators[0].saved[0].elements = 1 << 23;
  graph.layers[2].kind = LayerKind::head;
  const auto stored = [&](const std::string& keys) {
    return written(run(graph, "{activations: {name: ssdtrain, to: nvme, " + flash + keys + "}}"));
  };
  // By default: below 8 Mi elements, and the head. b alone moves.
  CHECK(stored("") == Approx(2));
  CHECK(stored(", threshold: 1") == Approx(4));
  CHECK(stored(", excluded: []") == Approx(4));
  CHECK(stored(", excluded: [block]") == Approx(2));
  CHECK(stored(", threshold: 1, excluded: [a, c]") == Approx(2));
}

TEST_CASE("a storage that two operators save is stored once", "[ssdtrain]") {
  const LayerGraph graph =
      toy::graph({block("a", {{"first", 1, 1, {saved(2_GB)}}, {"second", 1, 1, {saved(2_GB)}}})});
  SECTION("deduplicated: one file, held until the last of them has run backward") {
    const Run r = run(graph, ssd(plain + ", forwarding: false"));
    CHECK(written(r) == Approx(2));
    CHECK(read(r) == Approx(2));
    CHECK(r.peak("gpu0", "loaded activations") == 2e9);
    // Stored when "first" has saved it; loaded at 2, when "second" is launched.
    CHECK(r.start(r.ran("store").at(0)) == Approx(1));
    CHECK(r.start(r.ran("load").at(0)) == Approx(2));
  }
  SECTION("else two files, but the GPU holds one copy until backward") {
    const Run r = run(graph, ssd(plain + ", forwarding: false, deduplicate: false"));
    CHECK(written(r) == Approx(4));
    CHECK(read(r) == Approx(4));
    CHECK(r.peak("gpu0", "activations to store") == 2e9);
    CHECK(r.peak("gpu0", "loaded activations") == 4e9);
  }
}

TEST_CASE("the adaptive rule keeps what cannot be written in time", "[ssdtrain]") {
  const auto adapted = [](int layers, const std::string& bandwidth, const char* flips) {
    const Run r =
        run(blocks(layers), ssd("bandwidth: " + bandwidth + ", keep_switch: " + flips), 4);
    CHECK(written(r, 2) == Approx(2 * layers));  // the profiling iteration stores all
    return written(r, 3);
  };
  // Equal blocks, r = B · 1 s / 2 GB: the boundary is the first k > (3 L r - 2) / (1 + 2 r); none
  // when r >= (L + 1) / (L + 2). As described the block at the boundary is kept, as coded written.
  SECTION("L 3, r 0.3: k > 0.44") {
    CHECK(adapted(3, "0.6 GB/s", "before_node") == Approx(2));
    CHECK(adapted(3, "0.6 GB/s", "after_node") == Approx(4));
  }
  SECTION("L 4, r 0.7: k > 2.67") {
    CHECK(adapted(4, "1.4 GB/s", "before_node") == Approx(6));
    CHECK(adapted(4, "1.4 GB/s", "after_node") == Approx(8));
  }
  SECTION("L 4, r 0.85 of 5/6: nothing is kept") {
    CHECK(adapted(4, "1.7 GB/s", "before_node") == Approx(8));
  }
}

TEST_CASE("each rank keeps by the bandwidth that it measured", "[ssdtrain]") {
  // Rank 0 writes 4 GB/s, r = 4 · 1 / 2, and keeps nothing. Rank 1 writes 0.6 GB/s. All that it
  // stores is forwarded, so its drive only writes.
  StoragePath fast = toy::drive(), slow = toy::drive();
  fast.name = "fast", fast.read = fast.read_mixed = 8_GBps, fast.write = fast.write_mixed = 4_GBps;
  slow.name = "slow", slow.write = slow.write_mixed = 0.6_GBps;
  fast.gpudirect = slow.gpudirect = true;
  const Machine machine("toy", {toy::gpu(), toy::gpu()}, toy::host(), toy::fabric(), {fast, slow},
                        {});
  const auto stores = [&](int profiled, std::optional<int> rank) {
    const std::string keys = "profile_iteration: " + std::to_string(profiled);
    const Run r =
        toy::run({.graph = blocks(3),
                  .machine = machine,
                  .policy = "{activations: {name: ssdtrain, to: [fast, slow], " + keys + "}}",
                  .parallel = {.tensor = 2},
                  .iterations = profiled + 2});
    return r.ran("store", rank, profiled + 1).size();
  };
  SECTION("in the first iteration that stores") {
    // 6 GB from 1 s to 11 s of it: r = 0.3, k > 0.44, as coded two of three blocks are written.
    CHECK(stores(1, 0) == 3);
    CHECK(stores(1, 1) == 2);
  }
  SECTION("in the second, where what the first left in the queue counts") {
    // An iteration takes 6 s. The first that stores begins at 6: 6 GB from 7 to 17. The profiled
    // one begins at 12, its stores at 13, and its last ends when all 12 GB are written: 27. r = 6 /
    // 14 / 2 = 0.21, k > -0.05: one block.
    CHECK(stores(2, 0) == 3);
    CHECK(stores(2, 1) == 1);
  }
}

TEST_CASE("the last module of a micro-batch whose backward follows may keep its tensors",
          "[ssdtrain]") {
  CHECK(written(run(blocks(3), ssd(plain + ", keep_last_module: true"))) == Approx(4));
  SECTION("in a pipeline that is the last stage alone") {
    // p 2, m 2, a block each. Stage 0: F0 F1 B0 B1, so F1 is followed by another's backward.
    const Run r = toy::run({.graph = blocks(2),
                            .machine = toy::node(2),
                            .policy = ssd(plain + ", keep_last_module: true"),
                            .parallel = {.pipeline = 2},
                            .accumulation = 2});
    CHECK(r.ran("store", 0).size() == 2);
    CHECK(r.ran("store", 1).empty());
  }
}

TEST_CASE("a backward prefetches for the backward behind it", "[ssdtrain]") {
  // Stage 0 of p 2, m 2: F0 F1 B0 B1. B1's only operator leads its chunk: asked for at the end of
  // B0 by the pool, or else by the thread.
  const auto lanes = [](const std::string& keys) {
    const Run r = toy::run({.graph = blocks(2),
                            .machine = toy::node(2),
                            .policy = ssd(plain + keys),
                            .parallel = {.pipeline = 2},
                            .accumulation = 2});
    std::vector<std::string> names;
    for (const TaskId t : r.all("load", 0)) names.push_back(r.lane(t));
    return names;
  };
  CHECK(lanes("") == std::vector<std::string>{"rank0.main", "rank0.load"});
  CHECK(lanes(", prefetch_across: false") == std::vector<std::string>{"rank0.main", "rank0.main"});
}

TEST_CASE("the first iteration records sizes and moves nothing", "[ssdtrain]") {
  const Run r = run(blocks(3), ssd("adaptive: false"), 2);
  CHECK(written(r, 0) == 0);
  CHECK(written(r, 1) == Approx(6));
  CHECK(r.peak("gpu0", "kept activations") == 6e9);
}

TEST_CASE("to host memory no file is touched", "[ssdtrain]") {
  // 10 GB/s each way; three tensors are pinned for good in the next power of two of 6 GB.
  const Run r = run(blocks(3), ssd(flash + ", forwarding: false", "host"));
  CHECK(written(r) == 0);
  CHECK(read(r) == 0);
  CHECK(r.copied_bytes(Tier::gpu, Tier::host) == 6e9);
  CHECK(r.copied_bytes(Tier::host, Tier::gpu) == 6e9);
  CHECK(r.peak("host", "offloaded activations") == 8589934592.0);
  CHECK(r.end(r.ran("store").at(0)) == Approx(1.2));
}

TEST_CASE("without GPUDirect every byte passes host memory twice", "[ssdtrain]") {
  const std::string keys = plain + ", forwarding: false, prefetch: false";
  const LayerGraph graph = blocks(3);
  // 6 GB stored and 6 GB loaded.
  const auto dram = [&](const std::string& policy) {
    return through(run(graph, policy), "numa0.dram", 40_GBps);
  };
  CHECK(dram(ssd(keys)) == Approx(0));
  CHECK(dram(ssd(keys, "host")) == Approx(12));
  CHECK(dram(ssd(keys + ", gpudirect: false")) == Approx(24));

  const Run r = run(graph, ssd(keys + ", gpudirect: false"));
  CHECK(written(r) == Approx(6));
  CHECK(r.copied_bytes(Tier::gpu, Tier::host) == 6e9);
  // The one worker copies a in 0.2 s and writes it in 1 s; b, saved at 2, has to wait for it.
  const auto stores = r.ran("store");
  REQUIRE(stores.size() == 6);
  CHECK(r.start(stores[0]) == Approx(1));
  CHECK(r.end(stores[1]) == Approx(2.2));
  CHECK(r.start(stores[2]) == Approx(2.2));
  CHECK(r.end(stores[3]) == Approx(3.4));
}
