// Offloaded training gives bit for bit the losses and parameters of training without offload: the
// plan of every policy, run task by task with real tensors, beside a loop that knows no plan.
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "sim/timeline/contents.hpp"
#include "tests/catch.hpp"
#include "tests/sim/policy/meaning.hpp"
#include "validate/train/arithmetic.hpp"

using namespace tidegate;

namespace {

constexpr int steps = 20;

struct Case {
  const char* zero;
  const char* parameters;
  const char* optimizer;
  const char* activations;
};

std::vector<Override> overrides(const Case& c, int ranks, int accumulation, const char* dtype) {
  auto all = meant::small(ranks, accumulation);
  const auto set = [&](const char* key, const std::string& value) { all.emplace_back(key, value); };
  set("workload.network.layers", "2");
  set("workload.network.hidden", "16");
  set("workload.network.ffn", "24");
  set("workload.network.heads", "4");
  set("workload.network.kv_heads", "2");
  set("workload.network.vocabulary", "32");
  set("workload.sequence", "8");
  set("workload.micro_batch", "2");
  set("workload.dtype", dtype);
  set("policy.zero", std::string("{stage: ") + c.zero +
                         ", reduce_bucket_size: 1000, param_persistence_threshold: 100}");
  set("policy.parameters", c.parameters);
  set("policy.optimizer", c.optimizer);
  set("policy.activations", c.activations);
  set("iterations", std::to_string(steps));
  return all;
}

// A file without a name: what is put is appended.
class TemporaryFile : public train::ByteStore {
 public:
  void put(TaskId task, PoolId path, ContentId content, std::span<const std::byte> bytes) override {
    REQUIRE(std::fseek(file_.get(), 0, SEEK_END) == 0);
    extents_[{path, content}] = {std::ftell(file_.get()), bytes.size()};
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size());
    moved[task] += bytes.size();
  }
  std::vector<std::byte> get(TaskId task, PoolId path, ContentId content) override {
    const auto [offset, size] = extents_.at({path, content});
    std::vector<std::byte> bytes(size);
    REQUIRE(std::fseek(file_.get(), offset, SEEK_SET) == 0);
    REQUIRE(std::fread(bytes.data(), 1, size, file_.get()) == size);
    moved[task] += size;
    return bytes;
  }

  std::map<TaskId, std::size_t> moved;

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{std::tmpfile(), std::fclose};
  std::map<std::pair<PoolId, ContentId>, std::pair<long, std::size_t>> extents_;
};

// Every file task moves the bytes that the plan prices. All tensors of the tiny network divide by
// the ranks. A sub-group's read is priced with its gradient; here gradients are fragments below
// 1 MiB, which stay in memory: 4 bytes an element less, beside 4 of the master in the first update
// and 12 of master and moments later.
void check_bytes(const meant::Run& run, const std::map<TaskId, std::size_t>& moved,
                 bool reads_gradients) {
  for (std::uint32_t t = 0; t < run.plan.size(); ++t) {
    const auto* file = std::get_if<FileIo>(&run.plan.work(TaskId{t}));
    if (file == nullptr || is_skipped(run.plan, TaskId{t}, run.timeline)) continue;
    const auto found = moved.find(TaskId{t});
    const double bytes = found == moved.end() ? 0 : static_cast<double>(found->second);
    const Task& task = run.plan.tasks[t];
    const bool is_sub_group = run.plan.names[index(task.name)] == "read sub-group";
    const double gradients =
        is_sub_group && reads_gradients ? (task.iteration == 0 ? 1 : 1.0 / 3) : 0;
    INFO(run.plan.label(TaskId{t}) << " of iteration " << task.iteration);
    CHECK(bytes + gradients * bytes == file->bytes.value());
  }
}

// One task after the other, in the order in which a simulation ends them.
void follow(const Plan& plan, const Timeline& timeline, train::Arithmetic& arithmetic) {
  for (const Moment& m : moments(plan, timeline)) {
    if (!m.is_end) continue;
    arithmetic.run(m.task);
    for (const Effect& e : plan.effects(m.task)) {
      if (e.kind == Effect::Kind::free && holds(e.when, timeline))
        arithmetic.free(static_cast<BufferId>(e.target));
    }
  }
}

void check(const Case& c, int ranks, int accumulation, const char* dtype) {
  INFO("ZeRO-" << c.zero << ", parameters " << c.parameters << ", " << c.optimizer << ", "
               << c.activations << ", " << ranks << " ranks, " << accumulation << " micro-batches, "
               << dtype);
  const meant::Run run = meant::run(overrides(c, ranks, accumulation, dtype));
  const Workload& workload = run.scenario.workload;
  const train::TrainingOptions options{.seed = 3,
                                       .steps = steps,
                                       .ranks = ranks,
                                       .adam = {.rate = 1e-2F},
                                       .reduces_every_micro_step = c.zero[0] >= '2'};
  TemporaryFile file;
  train::Arithmetic arithmetic(run.plan, workload, run.graph, options, &file);
  follow(run.plan, run.timeline, arithmetic);
  const std::string optimizer = c.optimizer;
  check_bytes(run, file.moved,
              optimizer.find("zero_infinity") != std::string::npos ||
                  optimizer.find("delayed_gradients: false") != std::string::npos);
  const train::Training alone = train::train(workload, options);
  CHECK(arithmetic.losses() == alone.losses);
  CHECK(arithmetic.master() == alone.master);
  CHECK(alone.losses.size() == static_cast<std::size_t>(steps * ranks * accumulation));
}

void check_ranks_and_types(const Case& c) {
  check(c, 1, 1, "bf16");
  check(c, 2, 2, "bf16");
  check(c, 2, 1, "fp32");
}

constexpr std::array states = {
    Case{"0", "resident", "resident", "keep"},
    Case{"1", "resident", "resident", "keep"},
    Case{"2", "resident", "resident", "keep"},
    Case{"3", "resident", "resident", "keep"},
    Case{"1", "resident", "zero_offload", "keep"},
    Case{"2", "resident", "zero_offload", "keep"},
    Case{"3", "resident", "{name: zero_offload, sub_group_size: 500}", "keep"},
    Case{"3", "host", "{name: zero_offload, sub_group_size: 500}", "keep"},
    Case{"3", "{name: nvme, path: nvme}", "{name: zero_offload, sub_group_size: 500}", "keep"},
    Case{"3", "resident", "{name: twin_flow, ratio: 0.5, sub_group_size: 500}", "keep"},
    Case{"3", "resident", "{name: zero_infinity, path: nvme, sub_group_size: 500}", "keep"},
    Case{"3", "{name: nvme, path: nvme}", "{name: zero_infinity, path: nvme, sub_group_size: 500}",
         "keep"},
    Case{"3", "resident", "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 500}", "keep"},
    Case{"3", "host",
         "{name: mlp_offload, paths: [nvme, pfs], assignment: {shares: [2, 1]}, cache: false, "
         "delayed_gradients: false, sub_group_size: 500}",
         "keep"},
};

constexpr std::array activations = {
    "{name: keep, by_operator: true}",
    "{name: recompute, mode: full}",
    "{name: recompute, mode: full, every: 2}",
    "{name: recompute, mode: full, by_operator: true}",
    "{name: recompute, mode: selective}",
    "{name: ssdtrain, threshold: 1, to: nvme, profile_iteration: 1}",
    "{name: ssdtrain, threshold: 1, to: nvme, gpudirect: false, profile_iteration: 1}",
    "{name: ssdtrain, threshold: 1, to: host, adaptive: false}",
    "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false, record_first: false}",
    "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false, forwarding: false}",
    "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false, deduplicate: false}",
    "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false, prefetch: false}",
    "{name: swap_all, to: nvme, threshold: 1}",
    "{name: swap_all, to: host, threshold: 1}",
    "{name: flash_neuron, to: nvme, threshold: 1}",
    "{name: g10, to: nvme, threshold: 1}",
    "{name: teraio, to: nvme, threshold: 1}",
};

}  // namespace

TEST_CASE("wherever optimizer states and parameters live, training is the same bit for bit",
          "[train]") {
  for (const Case& c : states) check_ranks_and_types(c);
}

TEST_CASE("wherever activations live, training is the same bit for bit", "[train]") {
  for (const char* kept : activations) check_ranks_and_types({"0", "resident", "resident", kept});
}

TEST_CASE("activations and states offloaded together train the same bit for bit", "[train]") {
  const char* ssdtrain = "{name: ssdtrain, threshold: 1, to: nvme, profile_iteration: 1}";
  check_ranks_and_types(
      {"3", "resident", "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 500}", ssdtrain});
  check_ranks_and_types({"3", "{name: nvme, path: nvme}",
                         "{name: zero_infinity, path: nvme, sub_group_size: 500}", ssdtrain});
  check_ranks_and_types({"2", "resident", "zero_offload", "{name: recompute, mode: full}"});
}
