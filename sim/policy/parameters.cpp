#include "sim/policy/parameters.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/policy/bindings.hpp"

namespace tidegate {
namespace {

double element_bytes(const Step& step) { return bytes_per_element(step.setting().graph.dtype); }

Bytes shard_bytes(const Step& step, std::size_t layer) {
  double elements = 0;
  for (const Operator& op : step.setting().graph.layers[layer].operators) {
    for (const Parameter& p : op.parameters)
      elements += static_cast<double>(step.shard(p.elements));
  }
  return Bytes(elements * element_bytes(step));
}

Bytes all_shards(const Step& step, std::uint16_t rank) {
  return Bytes(static_cast<double>(step.shard_of_all(rank)) * element_bytes(step));
}

// Elements of a rank's shards that the passes of an iteration fetch: all in forward; in backward,
// or the recomputation before it, all but what forward left gathered, no more than
// max_reuse_distance and a sub-module.
double least_fetched(const Step& step) {
  const ZeroOptions& zero = step.setting().zero;
  double fetched = 0, largest = 0;
  for (const Layer& layer : step.graph().layers) {
    double elements = 0;
    for (const Operator& op : layer.operators) {
      for (const Parameter& p : op.parameters) {
        if (p.elements >= zero.persistence_threshold)
          elements += static_cast<double>(step.shard(p.elements));
      }
    }
    fetched += elements;
    largest = std::max(largest, elements);
  }
  const double left =
      static_cast<double>(zero.max_reuse_distance) / static_cast<double>(step.world()) +
      2 * largest;
  const double back = std::max(0.0, fetched - left);
  return static_cast<double>(step.setting().accumulation) * (fetched + back);
}

Bytes bytes_of(const Step& step, const Shards& shards) {
  return Bytes(static_cast<double>(shards.elements) * element_bytes(step));
}

// At the start of the run the shards of a rank are here.
void stand(Step& step, std::uint16_t rank, PoolId pool) {
  if (step.bindings == nullptr) return;
  step.bindings->stands(Content::Kind::shard, step.bindings->all_tensors(rank), rank, pool);
}

void move(Step& step, TaskId task, const Shards& shards, std::uint16_t rank, PoolId from, PoolId to,
          bool forgets = false) {
  if (step.bindings == nullptr) return;
  constexpr auto shard = Content::Kind::shard;
  step.bindings->moved(task, shards.tensors, rank, {shard, from}, {shard, to}, forgets);
}

class Resident final : public ParameterPolicy {
 public:
  void prepare(Step& step) override {
    if (step.setting().zero.stage < 3) return;  // the walker keeps whole parameters
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      step.reserve(step.gpu_pool(r), "parameter shards", all_shards(step, r));
      stand(step, r, step.gpu_pool(r));
    }
  }
  void fetch(Step&, std::uint16_t, std::int32_t, const Shards&, std::span<const TaskId> after,
             std::vector<TaskId>& ready) const override {
    ready.insert(ready.end(), after.begin(), after.end());
  }
  TaskId store(Step& step, std::uint16_t rank, const Shards& shards, std::int32_t item,
               std::span<const TaskId> after) const override {
    const TaskId task = step.to_gpu("upload parameters", rank, item, bytes_of(step, shards), after);
    move(step, task, shards, rank, step.host_pool(rank), step.gpu_pool(rank));
    return task;
  }
  bool stays_on_gpu() const override { return true; }
  std::string describe() const override { return "parameters on the GPU"; }
};

class OnHost final : public ParameterPolicy {
 public:
  void prepare(Step& step) override {
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      step.reserve(step.host_pool(r), "parameter shards", step.pinned(all_shards(step, r)));
      stand(step, r, step.host_pool(r));
    }
  }
  void fetch(Step& step, std::uint16_t rank, std::int32_t item, const Shards& shards,
             std::span<const TaskId> after, std::vector<TaskId>& ready) const override {
    const TaskId task = step.to_gpu("fetch parameters", rank, item, bytes_of(step, shards), after);
    move(step, task, shards, rank, step.host_pool(rank), step.gpu_pool(rank));
    ready.push_back(task);
  }
  TaskId store(Step& step, std::uint16_t rank, const Shards&, std::int32_t item,
               std::span<const TaskId> after) const override {
    return step.add("parameters updated", step.rank(rank).main, rank, item, Delay{}, after);
  }
  void add_least(const Step& step, std::uint16_t rank, LeastWork& least) const override {
    const Bytes bytes(least_fetched(step) * element_bytes(step));
    least.passes.emplace_back(Copy{step.host_place(rank), step.gpu_place(rank), bytes});
  }
  std::string describe() const override { return "parameters in host memory"; }
};

// Shards are files; a fixed number of pinned buffers takes them on the way to the GPU.
class OnNvme final : public ParameterPolicy {
 public:
  OnNvme(std::uint16_t path, std::int64_t buffers) : path_(path), buffers_(buffers) {}

  void prepare(Step& step) override {
    Bytes largest;
    for (std::size_t l = 0; l < step.graph().layers.size(); ++l)
      largest = std::max(largest, shard_bytes(step, l));
    readers_.clear();
    writers_.clear();
    slots_.clear();
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      step.reserve(step.host_pool(r), "parameter buffers",
                   static_cast<double>(buffers_) * step.pinned(largest));
      step.reserve(step.path_pool(r, path_), "parameter files", all_shards(step, r));
      stand(step, r, step.path_pool(r, path_));
      const std::string name = "rank" + std::to_string(r) + ".parameter";
      readers_.push_back(step.plan().lane(name + ".read", r));
      writers_.push_back(step.plan().lane(name + ".write", r));
      slots_.push_back(step.plan().tokens(name + ".buffers", static_cast<std::int32_t>(buffers_)));
    }
  }
  void fetch(Step& step, std::uint16_t rank, std::int32_t item, const Shards& shards,
             std::span<const TaskId> after, std::vector<TaskId>& ready) const override {
    const Bytes bytes = bytes_of(step, shards);
    const Effect take[] = {acquire(slots_[rank])};
    const TaskId read =
        step.add("read parameters", readers_[rank], rank, item,
                 FileIo{Direction::read, step.path_of(rank, path_), step.host_place(rank), bytes},
                 after, take);
    const Effect give[] = {release(slots_[rank])};
    const TaskId after_read[] = {read};
    const TaskId fetched =
        step.add("fetch parameters", step.rank(rank).h2d, rank, item,
                 Copy{step.host_place(rank), step.gpu_place(rank), bytes}, after_read, give);
    move(step, read, shards, rank, step.path_pool(rank, path_), step.host_pool(rank));
    move(step, fetched, shards, rank, step.host_pool(rank), step.gpu_pool(rank), true);
    ready.push_back(fetched);
  }
  TaskId store(Step& step, std::uint16_t rank, const Shards& shards, std::int32_t item,
               std::span<const TaskId> after) const override {
    const TaskId task = step.add("write parameters", writers_[rank], rank, item,
                                 FileIo{Direction::write, step.path_of(rank, path_),
                                        step.host_place(rank), bytes_of(step, shards)},
                                 after);
    move(step, task, shards, rank, step.host_pool(rank), step.path_pool(rank, path_));
    return task;
  }
  void add_least(const Step& step, std::uint16_t rank, LeastWork& least) const override {
    const Bytes bytes(least_fetched(step) * element_bytes(step));
    const std::uint16_t path = step.path_of(rank, path_);
    least.passes.emplace_back(FileIo{Direction::read, path, step.host_place(rank), bytes});
    least.passes.emplace_back(Copy{step.host_place(rank), step.gpu_place(rank), bytes});
  }
  std::string describe() const override { return "parameters on NVMe"; }

 private:
  std::uint16_t path_;
  std::int64_t buffers_;
  std::vector<LaneId> readers_, writers_;
  std::vector<TokenId> slots_;
};

}  // namespace

std::unique_ptr<ParameterPolicy> make_resident_parameters(yaml::Map&, const Machine&) {
  return std::make_unique<Resident>();
}
std::unique_ptr<ParameterPolicy> make_host_parameters(yaml::Map&, const Machine&) {
  return std::make_unique<OnHost>();
}
std::unique_ptr<ParameterPolicy> make_nvme_parameters(yaml::Map& options, const Machine& machine) {
  const std::uint16_t path = read_path(options.at("path"), machine).value_or(0);
  return std::make_unique<OnNvme>(path, read_few(options, "buffer_count", 5));
}

std::int32_t read_few(yaml::Map& options, const char* key, std::int64_t left_out) {
  constexpr std::int64_t most = 1'000'000;
  const auto node = options.find(key);
  return static_cast<std::int32_t>(node ? node->count(1, most) : left_out);
}

std::optional<std::uint16_t> read_path(const yaml::Node& node, const Machine& machine) {
  std::vector<std::string_view> names;
  for (const StoragePath& p : machine.paths()) names.push_back(p.name);
  const auto at = std::ranges::find(names, node.value().text);
  if (node.is_scalar() && at != names.end()) return static_cast<std::uint16_t>(at - names.begin());
  if (names.empty()) {
    node.problem(
        fmt::format("needs a storage path, and the profile of {} has none; add one under paths",
                    machine.name()));
  } else {
    node.choice(names);  // says which there are
  }
  return std::nullopt;
}

}  // namespace tidegate
