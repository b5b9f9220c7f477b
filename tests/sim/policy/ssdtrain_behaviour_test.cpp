#include <algorithm>
#include <map>
#include <numeric>

#include "sim/plan/check.hpp"
#include "sim/policy/activations.hpp"
#include "sim/report/memory.hpp"
#include "sim/run/predict.hpp"
#include "sim/timeline/laws.hpp"
#include "tests/catch.hpp"

/// What SSDTrain does when drives get slower, and what its code and its paper say of memory.

using namespace tidegate;

namespace {

const std::string root = TIDEGATE_SOURCE_DIR;
constexpr double GiB = 1 << 30;

struct Shape {
  const char *hidden, *heads, *layers;
};
constexpr Shape shapes[] = {{"8192", "64", "4"}, {"12288", "96", "3"}, {"16384", "128", "2"}};

std::string ssdtrain(const std::string& more = "") {
  return "{name: ssdtrain, to: [array4, array3]" + more + "}";
}

std::vector<Override> of(const Shape& shape, const std::string& activations) {
  return {{"workload.network.hidden", shape.hidden},
          {"workload.network.heads", shape.heads},
          {"workload.network.layers", shape.layers},
          {"policy.activations", activations}};
}

// Both arrays with drives of this rate; mixed rates are 0.9 of the pure ones, as in the profile.
void set_drives(std::vector<Override>& overrides, double gigabytes, bool are_alike) {
  for (const std::string array : {"array4", "array3"}) {
    const auto set = [&](const char* key, double rate) {
      overrides.emplace_back("machine.paths." + array + "." + key, std::to_string(rate) + " GB/s");
    };
    set("read", gigabytes), set("write", gigabytes);
    set("read_mixed", 0.9 * gigabytes), set("write_mixed", 0.9 * gigabytes);
  }
  if (are_alike) overrides.emplace_back("machine.paths.array3.count", "4");
}

Prediction run(const std::vector<Override>& overrides) {
  Scenario scenario = load_scenario(root + "/validate/published/ssdtrain_bert.yaml", overrides);
  return predict(scenario);
}

double time_of(const Prediction& p) { return p.report.iteration_time.value(); }
double written(const Prediction& p, std::size_t path) {
  return p.report.paths[path].written.value();
}
double steady_peak(const Prediction& p) { return p.report.pools[0].steady_peak.value(); }

bool is_named(const Prediction& p, std::size_t task, const std::string& name) {
  return p.plan.names[index(p.plan.tasks[task].name)] == name &&
         !is_skipped(p.plan, static_cast<TaskId>(task), p.timeline);
}

}  // namespace

TEST_CASE("blocks save what the formula says, and recomputation keeps inputs and one block",
          "[ssdtrain]") {
  // A block saves s b h (10 + 24/2) bytes on each of two ranks, and FlashAttention 4 b s a / 2 of
  // row statistics; its input has 2 s b h. In GiB, with s b = 16384: 4.125, 3/1024 and 0.375 at
  // hidden 12288 with 96 heads; 4.8125, 3.5/1024 and 0.4375 at 14336 with 112.
  const auto blocks = [](const Shape& shape) {
    Scenario scenario = load_scenario(root + "/validate/published/ssdtrain_bert.yaml",
                                      of(shape, "{name: keep, by_operator: true}"));
    double all = 0, inputs = 0, block = 0;
    for (const Layer& layer : build_graph(scenario.workload).layers) {
      if (layer.kind != LayerKind::block) continue;
      block = 0;
      for (const SavedTensor* t : storages_of(layer, Part::all)) block += t->bytes.value();
      all += block;
      inputs += layer.input.value();
    }
    return std::pair(all / GiB, (inputs + block) / GiB);
  };
  const auto check = [&](const Shape& shape, double all, double recomputed) {
    const auto [saved, least] = blocks(shape);
    CHECK(saved == all);
    CHECK(least == recomputed);
  };
  check({"12288", "96", "3"}, 12.375 + 9. / 1024, 5.25 + 3. / 1024);  // 3 blocks; 3 inputs and one
  check({"12288", "96", "4"}, 16.5 + 12. / 1024, 5.625 + 3. / 1024);
  check({"14336", "112", "3"}, 14.4375 + 10.5 / 1024, 6.125 + 3.5 / 1024);
}

TEST_CASE("by operator, gradients take the place of activations; by layer they stand beside them",
          "[ssdtrain]") {
  // Two operators, 2^29 16-bit parameters (1 GiB of gradients) each, that save 1 and 2 GiB.
  // By layer: 3 + 2. By operator: the second's backward holds 3 + 1, the first's 1 + 2.
  const std::string op =
      "forward: [{elementwise: {bytes: 1 MB}}], parameters: 536870912, saved: [{name: t, bytes: ";
  const std::string layers =
      "[{name: block, operators: [{name: a, " + op + "1 GiB}]}, {name: b, " + op + "2 GiB}]}]}]";
  const auto peak = [&](const char* activations) {
    std::vector<Override> overrides = {{"machine.gpus.blas_workspace", "0 B"},
                                       {"workload", "{dtype: fp16, layers: " + layers + "}"},
                                       {"machine.gpus.count", "1"},
                                       {"policy.activations", activations}};
    const Prediction p = run(overrides);
    return (steady_peak(p) - 2 * GiB) / GiB;  // less parameters
  };
  CHECK(peak("keep") == 5);
  CHECK(peak("{name: keep, by_operator: true}") == 4);
  CHECK(peak("{name: recompute, by_operator: true}") == 4);
}

TEST_CASE("keeping by operator is SSDTrain with nothing to store", "[ssdtrain]") {
  const std::string nothing = ssdtrain(", adaptive: false, threshold: 1000000000000");
  for (const Shape& shape : shapes) {
    const Prediction kept = run(of(shape, "{name: keep, by_operator: true}"));
    const Prediction offloaded = run(of(shape, nothing));
    INFO(shape.hidden);
    CHECK(written(offloaded, 0) == 0);
    CHECK(steady_peak(kept) == steady_peak(offloaded));
    CHECK(steady_peak(kept) <= steady_peak(run(of(shape, "keep"))));
  }
}

TEST_CASE("a tensor is on the GPU until its store has ended, even if backward is done with it",
          "[ssdtrain]") {
  std::vector<Override> overrides = of(shapes[0], ssdtrain(", adaptive: false"));
  set_drives(overrides, 2, false);
  const Prediction p = run(overrides);
  std::map<const Buffer*, Instant> freed;
  play_memory(p.plan, p.timeline,
              [&](Instant at, TaskId, const Buffer& buffer, std::int64_t delta) {
                if (delta < 0) freed[&buffer] = at;
              });
  int outlasted = 0;
  for (std::size_t t = 0; t < p.plan.size(); ++t) {
    if (!is_named(p, t, "store")) continue;
    for (const Effect& e : p.plan.effects(static_cast<TaskId>(t))) {
      if (e.kind != Effect::Kind::free) continue;
      const Instant at = freed.at(&p.plan.buffers[e.target]);
      CHECK(at >= p.timeline.end[t]);
      outlasted += at > p.timeline.end[t] ? 1 : 0;
    }
  }
  CHECK(outlasted > 0);  // and others are used by backward after their store has ended
}

TEST_CASE("the profiling iteration ends when its stores have", "[ssdtrain]") {
  std::vector<Override> overrides = of(shapes[0], ssdtrain());
  set_drives(overrides, 1, false);
  const Prediction p = run(overrides);
  Instant last = 0;
  for (std::size_t t = 0; t < p.plan.size(); ++t) {
    if (is_named(p, t, "store") && p.plan.tasks[t].iteration <= 2)
      last = std::max(last, p.timeline.end[t]);
  }
  CHECK(last <= p.report.iterations[2].to);
  // 12 GB at 3 GB/s and 4 GB/s last longer than an iteration: the profiling one waits.
  CHECK(p.report.iterations[2].time() > 2 * p.report.iterations[0].time());
}

TEST_CASE("the slower the drives, the nearer the front is the boundary of what is kept",
          "[ssdtrain]") {
  // Equal arrays: ranks that differ wait for each other in the profiled forward, which is then
  // longer, and the rule less strict.
  for (const Shape& shape : shapes) {
    double before = 1e300, first = 0;
    for (const double rate : {8.0, 5.0, 3.0, 2.0, 1.0}) {
      std::vector<Override> overrides = of(shape, ssdtrain());
      set_drives(overrides, rate, true);
      const double stored = written(run(overrides), 0);
      INFO(shape.hidden << " at " << rate << " GB/s a drive");
      CHECK(stored <= before);
      if (first == 0) first = stored;
      before = stored;
    }
    CHECK(before < 0.6 * first);
  }
}

TEST_CASE("keeping from the boundary node on, no drive is so slow that the step stalls",
          "[ssdtrain]") {
  for (const Shape& shape : shapes) {
    const double kept = time_of(run(of(shape, "{name: keep, by_operator: true}")));
    for (const double rate : {4.0, 2.0, 1.0, 0.7}) {
      std::vector<Override> overrides = of(shape, ssdtrain(", keep_switch: before_node"));
      set_drives(overrides, rate, false);
      INFO(shape.hidden << " at " << rate << " GB/s a drive");
      CHECK(time_of(run(overrides)) / kept < 1.03);
    }
  }
}

TEST_CASE("without adaptive keep and forwarding, slower drives never make a step shorter",
          "[ssdtrain]") {
  // In the end the step is all transfers: 12 to 14 GB out and in again on each rank.
  for (const Shape& shape : shapes) {
    double before = 0, first = 0;
    for (const double rate : {8.0, 5.0, 3.0, 2.0, 1.0}) {
      std::vector<Override> overrides = of(shape, ssdtrain(", adaptive: false, forwarding: false"));
      set_drives(overrides, rate, true);
      const double time = time_of(run(overrides));
      INFO(shape.hidden << " at " << rate << " GB/s a drive");
      CHECK(time >= before);
      if (first == 0) first = time;
      before = time;
    }
    CHECK(before > 2 * first);
  }
}

TEST_CASE("with forwarding it is memory that slow drives cost: the queue of stores grows",
          "[ssdtrain]") {
  for (const Shape& shape : shapes) {
    const Prediction kept = run(of(shape, "{name: keep, by_operator: true}"));
    std::vector<Override> overrides = of(shape, ssdtrain(", adaptive: false"));
    set_drives(overrides, 1, true);
    const Prediction p = run(overrides);
    INFO(shape.hidden);
    CHECK(time_of(p) / time_of(kept) < 1.03);
    CHECK(steady_peak(p) > steady_peak(kept));
  }
}

TEST_CASE("of a pair of ranks the one with fewer drives sets the pace, and keeps more",
          "[ssdtrain]") {
  // At hidden 8192 all of 12 GB in half a step of 1.2 s are 20 GB/s: four drives have 16, three 12.
  const auto pair = [](const std::string& activations, std::initializer_list<Override> more) {
    std::vector<Override> overrides = of(shapes[0], activations);
    overrides.insert(overrides.end(), more);
    return run(overrides);
  };
  const std::string all = ssdtrain(", adaptive: false");
  const double mixed = time_of(pair(all, {}));
  CHECK(mixed == Approx(time_of(pair(all, {{"machine.paths.array4.count", "3"}}))).epsilon(0.01));
  CHECK(mixed > 1.02 * time_of(pair(all, {{"machine.paths.array3.count", "4"}})));
  const Prediction adapted = pair(ssdtrain(), {});
  CHECK(written(adapted, 1) < written(adapted, 0));
  CHECK(written(adapted, 0) < written(pair(all, {}), 0));
}

TEST_CASE("a launch thread that is not far ahead loads late: less memory, more time",
          "[ssdtrain]") {
  for (const Shape& shape : shapes) {
    const Prediction far = run(of(shape, ssdtrain()));
    const Prediction near = run(of(shape, ssdtrain(", launch_queue: 8")));
    INFO(shape.hidden);
    CHECK(steady_peak(near) < steady_peak(far));
    CHECK(time_of(near) > time_of(far));
  }
}

TEST_CASE("plans of slow and fast drives obey the laws", "[ssdtrain][laws]") {
  for (const char* more : {"", ", adaptive: false", ", adaptive: false, forwarding: false",
                           ", cancel_forwarded: true", ", launch_queue: 1"}) {
    for (const double rate : {1.0, 3.0, 8.0}) {
      std::vector<Override> overrides = of(shapes[0], ssdtrain(more));
      set_drives(overrides, rate, false);
      const Prediction p = run(overrides);
      INFO(more << " at " << rate << " GB/s a drive");
      for (const std::string& fault : faults(p.plan)) FAIL_CHECK(fault);
      for (const std::string& broken : broken_laws(p.plan, p.timeline, p.demands, p.resources)) {
        FAIL_CHECK(broken);
      }
    }
  }
}
