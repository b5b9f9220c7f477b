// Offloaded training gives bit for bit the losses and parameters of training without offload: the
// plan of every policy, run task by task with real tensors, beside a loop that knows no plan.
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "sim/timeline/contents.hpp"
#include "tests/catch.hpp"
#include "tests/validate/train/offloaded_cases.hpp"
#include "validate/train/arithmetic.hpp"

using namespace tidegate;
using namespace tidegate::offloaded;

namespace {

// A file without a name: what is put is appended.
class TemporaryFile : public train::ByteStore {
 public:
  explicit TemporaryFile(const Plan& plan) : plan_(plan) {}

  bool holds(const Access& at) const override {
    return plan_.pools[index(at.pool)].place.tier == Tier::storage;
  }
  void put(TaskId task, const Access& at, std::span<const std::byte> bytes) override {
    REQUIRE(std::fseek(file_.get(), 0, SEEK_END) == 0);
    extents_[train::place_of(at)] = {std::ftell(file_.get()), bytes.size()};
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size());
    moved[task] += bytes.size();
  }
  std::optional<std::vector<std::byte>> get(TaskId task, const Access& at) override {
    const auto found = extents_.find(train::place_of(at));
    if (found == extents_.end()) return {};
    const auto [offset, size] = found->second;
    std::vector<std::byte> bytes(size);
    REQUIRE(std::fseek(file_.get(), offset, SEEK_SET) == 0);
    REQUIRE(std::fread(bytes.data(), 1, size, file_.get()) == size);
    moved[task] += size;
    return bytes;
  }

  void drop(const Access& at) override { extents_.erase(train::place_of(at)); }

  std::map<TaskId, std::size_t> moved;

 private:
  const Plan& plan_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{std::tmpfile(), std::fclose};
  std::map<train::Place, std::pair<long, std::size_t>> extents_;
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
  for (const TaskMoment& m : moments(plan, timeline)) {
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
                                       .update = run.plan.meaning.update,
                                       .reduces_every_micro_step = c.zero[0] >= '2'};
  TemporaryFile file(run.plan);
  train::Arithmetic arithmetic(run.plan, workload, run.graph, options, &file);
  follow(run.plan, run.timeline, arithmetic);
  const std::string optimizer = c.optimizer;
  check_bytes(run, file.moved,
              optimizer.find("zero_infinity") != std::string::npos ||
                  optimizer.find("delayed_gradients: false") != std::string::npos);
  const train::Training alone = train::train(workload, options);
  CHECK(arithmetic.losses() == alone.losses);
  CHECK(arithmetic.state() == alone.state);
  CHECK(alone.losses.size() == static_cast<std::size_t>(steps * ranks * accumulation));
}

void check_ranks_and_types(const Case& c) {
  check(c, 1, 1, "bf16");
  check(c, 2, 2, "bf16");
  check(c, 2, 1, "fp32");
}

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
      {"3", "resident",
       "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 500, buffer_count: 4}", ssdtrain});
  check_ranks_and_types({"3", "{name: nvme, path: nvme}",
                         "{name: zero_infinity, path: nvme, sub_group_size: 500, buffer_count: 4}",
                         ssdtrain});
  check_ranks_and_types({"2", "resident", "zero_offload", "{name: recompute, mode: full}"});
}
