#include <filesystem>
#include <fstream>

#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/plan/check.hpp"
#include "sim/run/predict.hpp"
#include "sim/timeline/laws.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

const std::string scenarios = std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/";

// A small decoder on the published node: four layers, sub-groups of a few tensors.
const std::vector<Override> small = {{"workload.network.layers", "4"},
                                     {"workload.network.hidden", "1024"},
                                     {"workload.network.ffn", "4096"},
                                     {"workload.network.heads", "8"},
                                     {"workload.sequence", "512"},
                                     {"policy.optimizer.sub_group_size", "1000000"},
                                     {"policy.zero.reduce_bucket_size", "8000000"}};

std::vector<Override> with(std::vector<Override> base, std::initializer_list<Override> more) {
  base.insert(base.end(), more);
  return base;
}

Prediction run(const std::string& file, const std::vector<Override>& overrides) {
  Scenario scenario = load_scenario(scenarios + file, overrides);
  return predict(scenario);
}

void check_laws(const Prediction& p) {
  for (const std::string& fault : faults(p.plan)) FAIL_CHECK(fault);
  for (const std::string& broken : broken_laws(p.plan, p.timeline, p.demands, p.resources)) {
    FAIL_CHECK(broken);
  }
}

std::string error_of(const std::string& file, const std::vector<Override>& overrides) {
  try {
    load_scenario(scenarios + file, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

struct Option {
  const char* name;
  std::vector<Override> overrides;
};

const std::vector<Option> optimizers = {
    {"resident", {{"policy.optimizer", "resident"}}},
    {"zero_offload", {{"policy.optimizer", "{name: zero_offload, sub_group_size: 1000000}"}}},
    {"zero_offload delayed",
     {{"policy.optimizer", "{name: zero_offload, sub_group_size: 1000000, delayed_update: true}"}}},
    {"twin_flow", {{"policy.optimizer", "{name: twin_flow, ratio: 0.3, sub_group_size: 1000000}"}}},
    {"zero_infinity",
     {{"policy.optimizer",
       "{name: zero_infinity, path: nvme, sub_group_size: 1000000, buffer_count: 12}"}}},
    {"zero_infinity, no pipeline",
     {{"policy.optimizer",
       "{name: zero_infinity, path: nvme, sub_group_size: 1000000, pipeline_read: false, "
       "pipeline_write: false}"}}},
    {"mlp_offload",
     {{"policy.optimizer",
       "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 1000000, buffer_count: 9}"}}},
    {"mlp_offload, nothing on",
     {{"policy.optimizer",
       "{name: mlp_offload, paths: [nvme, pfs], assignment: {shares: [2, 1]}, exclusive: false, "
       "cache: false, delayed_gradients: false, async_upload: false, sub_group_size: 1000000}"}}},
};
const std::vector<Option> activations = {
    {"keep", {{"policy.activations", "keep"}}},
    {"keep by operator", {{"policy.activations", "{name: keep, by_operator: true}"}}},
    {"recompute by operator, every 3",
     {{"policy.activations", "{name: recompute, every: 3, by_operator: true}"}}},
    {"recompute", {{"policy.activations", "{name: recompute, mode: full}"}}},
    {"recompute every 3", {{"policy.activations", "{name: recompute, every: 3}"}}},
    {"selective", {{"policy.activations", "{name: recompute, mode: selective}"}}},
};
const std::vector<Option> parameters = {
    {"resident", {{"policy.parameters", "resident"}}},
    {"host", {{"policy.parameters", "host"}}},
    {"nvme", {{"policy.parameters", "{name: nvme, path: nvme}"}}},
};

}  // namespace

TEST_CASE("every combination of policies obeys the laws of plans and timelines", "[policy][laws]") {
  for (const Option& optimizer : optimizers) {
    for (const Option& activation : activations) {
      for (const Option& parameter : parameters) {
        for (const char* accumulation : {"1", "3"}) {
          std::vector<Override> overrides(small.begin(), small.begin() + 5);
          overrides = with(overrides, {{"policy.zero.reduce_bucket_size", "8000000"},
                                       {"iterations", "3"},
                                       {"workload.accumulation", accumulation}});
          for (const Option* c : {&optimizer, &activation, &parameter}) {
            overrides.insert(overrides.end(), c->overrides.begin(), c->overrides.end());
          }
          INFO(optimizer.name << " / " << activation.name << " / " << parameter.name
                              << " / accumulation " << accumulation);
          Scenario scenario = load_scenario(scenarios + "mlp_offload_70b.yaml", overrides);
          check_laws(predict(scenario));
        }
      }
    }
  }
}

TEST_CASE("every ZeRO stage with its optimizers obeys the laws", "[policy][laws]") {
  for (const char* stage : {"0", "1", "2", "3"}) {
    for (const char* optimizer :
         {"resident", "{name: zero_offload}", "{name: twin_flow, ratio: 0.5}"}) {
      if (stage[0] == '0' && optimizer[0] == '{') continue;
      const std::vector<Override> base(small.begin(), small.begin() + 5);
      const auto overrides = with(base, {{"policy.zero.stage", stage},
                                         {"policy.optimizer", optimizer},
                                         {"workload.accumulation", "2"},
                                         {"iterations", "3"}});
      INFO("stage " << stage << " " << optimizer);
      Scenario scenario = load_scenario(scenarios + "mlp_offload_70b.yaml", overrides);
      check_laws(predict(scenario));
    }
  }
}

TEST_CASE("every shipped scenario obeys the laws", "[policy][laws]") {
  for (const auto& entry : std::filesystem::directory_iterator(scenarios)) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path().filename().string());
    Scenario scenario = load_scenario(entry.path().string());
    check_laws(predict(scenario));
  }
}

TEST_CASE("the swapped optimizer moves the bytes that the engines move", "[policy]") {
  const auto bytes = [](const Prediction& p, std::size_t path) {
    return std::pair(p.report.paths[path].read.value(), p.report.paths[path].written.value());
  };
  const Prediction baseline = run("zero_infinity_70b.yaml", {});
  const auto parameters = static_cast<double>(baseline.graph.parameters);
  SECTION("baseline: 16 bytes read and 16 written for every parameter") {
    // p, m, v and gradient in; p, m, v out, and the gradient out during backward. Fragments of
    // norms below 1 MiB stay in memory on the way out: less than 0.01 %.
    const auto [read, written] = bytes(baseline, 0);
    CHECK(read / parameters == Approx(16).epsilon(1e-3));
    CHECK(written / parameters == Approx(16).epsilon(1e-3));
  }
  SECTION("multi-path: 12 in and 12 out for the sub-groups that are not cached") {
    // logs of the 70B run, GB per update and node: nvme 464.9 in, 467.7 out; pfs 198.1 in, 200.9
    // out
    const Prediction mlp = run("mlp_offload_70b.yaml", {});
    CHECK(bytes(mlp, 0).first == Approx(464.9e9).epsilon(0.01));
    CHECK(bytes(mlp, 0).second == Approx(467.7e9).epsilon(0.01));
    CHECK(bytes(mlp, 1).first == Approx(198.1e9).epsilon(0.02));
    CHECK(bytes(mlp, 1).second == Approx(200.9e9).epsilon(0.02));
  }
}

TEST_CASE("the same scenario gives the same bytes", "[policy]") {
  const Prediction a = run("mlp_offload_70b.yaml", small), b = run("mlp_offload_70b.yaml", small);
  CHECK(to_json(a.report) == to_json(b.report));
  CHECK(a.timeline.end == b.timeline.end);
}

TEST_CASE("a scenario can be predicted again: policies remember nothing", "[policy]") {
  for (const Option& optimizer : optimizers) {
    for (const Option& parameter : parameters) {
      std::vector<Override> overrides(small.begin(), small.begin() + 5);
      for (const Option* c : {&optimizer, &parameter}) {
        overrides.insert(overrides.end(), c->overrides.begin(), c->overrides.end());
      }
      INFO(optimizer.name << " / " << parameter.name);
      Scenario scenario = load_scenario(scenarios + "mlp_offload_70b.yaml", overrides);
      const Prediction first = predict(scenario), second = predict(scenario);
      CHECK(first.timeline.end == second.timeline.end);
      CHECK(to_json(first.report) == to_json(second.report));
    }
  }
}

TEST_CASE("one path of MLP-Offload with nothing switched on is ZeRO-Infinity", "[policy]") {
  const Prediction mlp =
      run("mlp_offload_70b.yaml", with(small, {{"policy.optimizer.paths", "[nvme]"},
                                               {"policy.optimizer.assignment", "proportional"},
                                               {"policy.optimizer.exclusive", "false"},
                                               {"policy.optimizer.cache", "false"},
                                               {"policy.optimizer.delayed_gradients", "false"},
                                               {"policy.optimizer.async_upload", "false"},
                                               {"policy.optimizer.buffer_count", "8"}}));
  const Prediction zero =
      run("zero_infinity_70b.yaml", with(small, {{"policy.optimizer.buffer_count", "8"}}));
  CHECK(mlp.report.iteration_time.value() == zero.report.iteration_time.value());
  CHECK(mlp.timeline.makespan == zero.timeline.makespan);
}

TEST_CASE("each principle of MLP-Offload makes the published run faster", "[policy]") {
  // Direction only: the paper and its logs find every principle to help on this node.
  const auto time = [](std::initializer_list<Override> overrides) {
    return run("mlp_offload_70b.yaml", overrides).report.iteration_time.value();
  };
  const double full = time({});
  CHECK(time({{"policy.optimizer.exclusive", "false"}}) > full);
  CHECK(time({{"policy.optimizer.cache", "false"}}) > full);
  CHECK(time({{"policy.optimizer.delayed_gradients", "false"}}) > full);
  CHECK(time({{"policy.optimizer.paths", "[nvme]"},
              {"policy.optimizer.assignment", "proportional"},
              {"policy.optimizer.exclusive", "false"}}) > full);
}

TEST_CASE("nothing is gathered ahead in the first iteration, so gathers and kernels take turns",
          "[policy]") {
  // Steady: the larger of gathers and kernels at least, their sum at most. First: their sum.
  const Prediction p = run("mlp_offload_70b.yaml", {{"iterations", "3"}});
  const auto forward = [&](std::size_t i) {
    return p.report.iterations[i].phases[static_cast<std::size_t>(Phase::forward)].value();
  };
  double gathers = 0, kernels = 0;
  for (std::size_t i = 0; i < p.plan.size(); ++i) {
    const Task& task = p.plan.tasks[i];
    if (task.iteration != 1 || task.phase != Phase::forward || task.rank != 0) continue;
    const Demand& d = p.demands[index(task.work)];
    const std::string& name = p.plan.names[index(task.name)];
    if (name == "gather parameters") gathers += (d.latency + d.alone).value();
    if (name == "forward") kernels += (d.latency + d.alone).value();
  }
  CHECK(forward(0) == Approx(gathers + kernels).epsilon(0.02));
  CHECK(forward(1) < forward(0));
  CHECK(forward(1) >= std::max(gathers, kernels));
}

TEST_CASE("a delayed update costs no time of its own when compute can hide it", "[policy]") {
  const auto of = [](const char* delayed) {
    return run(
        "mlp_offload_70b.yaml",
        with(small, {{"workload.sequence", "4096"},
                     {"policy.optimizer",
                      std::string("{name: zero_offload, delayed_update: ") + delayed + "}"}}));
  };
  const auto update = [](const Prediction& p) {
    return p.report.phases[static_cast<std::size_t>(Phase::update)].value();
  };
  const Prediction on_time = of("false"), late = of("true");
  CHECK(update(late) < update(on_time));
  CHECK(late.report.iteration_time < on_time.report.iteration_time);
}

TEST_CASE("full recomputation runs the forward of the blocks again", "[policy]") {
  const auto flops = [](const char* activations) {
    const Prediction p =
        run("mlp_offload_70b.yaml", with(small, {{"policy.activations", activations}}));
    return std::pair(p.report.facts.hardware_flops.value(), p.report.facts.model_flops.value());
  };
  const auto [kept, model] = flops("keep");
  const auto [recomputed, same] = flops("{name: recompute, mode: full}");
  // 3 units of forward without, 4 with, for the blocks; embedding and head are not recomputed.
  CHECK(model == same);
  CHECK(recomputed > kept);
  CHECK(recomputed < kept * 4 / 3);
}

TEST_CASE("without a count there are as many swap buffers as the update holds; fewer are said",
          "[policy]") {
  // 4 tensors (parameter, two moments, gradient) of a sub-group that is updated, as many of one
  // that is read ahead and of one that is written behind; 3 where gradients are not in files.
  struct Row {
    std::string keys, said;
  };
  const std::string zero = "name: zero_infinity, path: nvme",
                    mlp = "name: mlp_offload, paths: [nvme]";
  const std::vector<Row> rows = {
      {zero, "12 buffers of"},
      {zero + ", pipeline_write: false", "8 buffers of"},
      {zero + ", pipeline_read: false, pipeline_write: false", "4 buffers of"},
      {zero + ", buffer_count: 11", "11 buffers (too few: the update holds 12)"},
      {mlp + ", buffer_count: 9", "9 buffers a path"},
      {mlp + ", buffer_count: 8", "8 buffers (too few: the update holds 9)"},
      {mlp + ", buffer_count: 9, delayed_gradients: false", "(too few: the update holds 12)"}};
  for (const auto& [keys, said] : rows) {
    INFO(keys);
    const Scenario scenario = load_scenario(scenarios + "zero_infinity_70b.yaml",
                                            {{"policy.optimizer", "{" + keys + "}"}});
    CHECK_THAT(scenario.policy.optimizer->describe(), Containing(said));
  }
}

TEST_CASE("a wrong scenario is a located error that says what would be right", "[policy][input]") {
  const std::string file = "mlp_offload_70b.yaml";
  const auto set = [&](const char* key, const char* value) {
    return error_of(file, {{key, value}});
  };
  CHECK_THAT(set("policy.optimizer.name", "mlp_ofload"), Containing("did you mean 'mlp_offload'?"));
  CHECK_THAT(set("policy.optimizer.buffers", "3"),
             Containing("policy.optimizer.buffers: unknown key"));
  CHECK_THAT(set("policy.zero.stage", "4"), Containing("between 0 and 3"));
  CHECK_THAT(set("policy.zero.stage", "2"), Containing("mlp_offload needs zero.stage 3"));
  CHECK_THAT(set("policy.optimizer.paths", "[nvme, tape]"), Containing("'tape'"));
  CHECK_THAT(set("policy.optimizer.paths", "[nvme, nvme]"), Containing("listed twice"));
  CHECK_THAT(set("policy.optimizer.paths", "[]"), Containing("names no path"));
  CHECK_THAT(set("policy.optimizer.assignment", "{shares: [1]}"), Containing("2 numbers"));
  CHECK_THAT(set("policy.optimizer.aio.block_size", "2"), Containing("has no unit"));
  // Beyond what its type holds nothing may wrap around.
  CHECK_THAT(set("policy.optimizer.buffer_count", "1e12"), Containing("between 1 and 1000000"));
  CHECK_THAT(set("policy.optimizer.aio.queue_depth", "4294967297"),
             Containing("between 1 and 1000000"));
  CHECK_THAT(set("policy.optimizer.aio.thread_count", "4294967297"),
             Containing("between 1 and 1000000"));
  CHECK_THAT(set("policy.parameters", "{name: nvme, path: nvme, buffer_count: 1e12}"),
             Containing("between 1 and 1000000"));
  CHECK_THAT(
      set("policy.activations", "{name: swap_all, to: nvme, aio: {queue_depth: 4294967297}}"),
      Containing("between 1 and 1000000"));
  CHECK_THAT(set("machine.host.base_use", "1e30 GB"), Containing("more than 1000 PB"));
  CHECK_THAT(set("policy.optimizer", "{name: twin_flow, ratio: 1.5}"),
             Containing("between 0 and 1"));
  CHECK_THAT(set("policy.optimizer", "{name: twin_flow}"), Containing("ratio: is missing"));
  CHECK_THAT(set("workload.network.layers", "0"), Containing("layers"));
  CHECK_THAT(set("ranks", "9"), Containing("has 4 GPUs"));
  CHECK_THAT(set("hardware", "h100_4gpu"), Containing("there is no profile 'h100_4gpu'"));
  CHECK_THAT(set("iterations", "0"), Containing("at least 1"));
  CHECK_THAT(set("workload.tensor_parallel", "8"), Containing("4 ranks of a node"));
  CHECK_THAT(set("workload.tensor_parallel", "3"), Containing("does not divide the 64 heads"));
  CHECK_THAT(set("workload.pipeline_parallel", "2"), Containing("zero.stage 0 or 1"));
  CHECK_THAT(set("workload.pipeline_parallel", "3"), Containing("do not divide the 4 GPUs"));
  CHECK_THAT(set("workload.pipeline_parallel", "128"), Containing("a network of 80 blocks"));
  CHECK_THAT(set("workload.interleave", "2"), Containing("needs pipeline_parallel"));
  CHECK_THAT(set("policy.activations", "{name: recompute, mode: selective, by_operator: true}"),
             Containing("by_operator: applies to mode full"));
  CHECK_THAT(set("policy.activations", "{name: ssdtrain}"), Containing("to: is missing"));
  CHECK_THAT(set("policy.activations", "{name: ssdtrain, to: nvme, gpudirect: true}"),
             Containing("needs storage paths with gpudirect"));
  CHECK_THAT(set("policy.activations", "{name: ssdtrain, to: nvme, prefetch_chunk: 0}"),
             Containing("at least 1"));
  CHECK_THAT(set("policy.activations", "{name: ssdtrain, to: disk}"), Containing("nvme, pfs"));
  CHECK_THAT(set("nonsense", "1"), Containing("nonsense: unknown key"));
}

TEST_CASE("a policy that needs a path is refused on a machine without one", "[policy][input]") {
  const std::string said = error_of("zero_infinity_70b.yaml", {{"machine.paths", "{}"}});
  CHECK_THAT(said, Containing("needs a storage path"));
}

TEST_CASE("a run of years is refused, not wrapped around", "[policy][input]") {
  // 6e7 parameters at least: 6 · 6e7 · 512 operations of a micro-batch at one a second, and 12
  // bytes each at one a second on the drive, 7e8 s.
  for (const Override& slow : {Override{"machine.gpus.peak_16", "1 FLOP/s"},
                               Override{"machine.paths.nvme.write", "1 B/s"}}) {
    Scenario scenario = load_scenario(scenarios + "zero_infinity_70b.yaml", with(small, {slow}));
    CHECK_THROWS_WITH(predict(scenario), Containing("days of work"));
  }
}
