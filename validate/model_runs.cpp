#include "validate/model_runs.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "validate/ssdtrain_cost.hpp"

namespace tidegate {
namespace {

constexpr double published_gate = 0.01;
constexpr double exact_gate = 1e-5;

struct Quantity {
  std::string_view name, unit;
  double (*of)(const SsdTrainRun&);
};
constexpr std::array quantities = {
    Quantity{"activations", "B", [](const SsdTrainRun& r) { return step_activations(r).value(); }},
    Quantity{"step", "s", [](const SsdTrainRun& r) { return step_time(r).value(); }},
    Quantity{"forward", "s", [](const SsdTrainRun& r) { return forward_time(r).value(); }},
    Quantity{"write_bandwidth", "B/s",
             [](const SsdTrainRun& r) { return write_bandwidth(r).value(); }},
    Quantity{"lifetime", "years", [](const SsdTrainRun& r) { return lifetime_years(r, {}); }},
    Quantity{"micro_batch", "1",
             [](const SsdTrainRun& r) { return static_cast<double>(r.micro_batch); }},
};

double base_value(const yaml::Node& node, std::string_view unit) {
  if (unit == "B") return node.quantity<Bytes>().value();
  if (unit == "s") return node.quantity<Seconds>().value();
  if (unit == "B/s") return node.quantity<BytesPerSecond>().value();
  const double value = node.number(0);
  if (value == 0) node.problem("is 0; an error is relative to what was published");
  return value;
}

using Runs = std::map<std::string, SsdTrainRun>;

// Parts of a run by name: what a GPU is, or what a network is.
Runs read_parts(const yaml::Node& node, void (*read)(yaml::Map&, SsdTrainRun&)) {
  Runs parts;
  yaml::Map map = node.map();
  for (const auto& [name, part] : map.all()) {
    yaml::Map keys = part.map();
    read(keys, parts[name]);
  }
  return parts;
}

void read_gpu(yaml::Map& in, SsdTrainRun& run) {
  run.memory = in.quantity<Bytes>("memory");
  run.memory_bandwidth = in.quantity<BytesPerSecond>("memory_bandwidth");
  run.links = in.quantity<BytesPerSecond>("links");
  run.network = in.quantity<BytesPerSecond>("network");
}

void read_network(yaml::Map& in, SsdTrainRun& run) {
  run.layers = in.count("layers", 1);
  run.hidden = in.count("hidden", 1);
  run.heads = in.count("heads", 1);
  run.vocabulary = in.count("vocabulary", 1);
  run.sequence = in.count("sequence", 1);
}

// The part of that name, or an empty one with a problem.
SsdTrainRun find_part(const yaml::Node& node, const Runs& parts) {
  std::vector<std::string_view> names;
  for (const auto& [name, part] : parts) names.push_back(name);
  if (names.empty()) return {};
  return parts.at(std::string(names[node.choice(names)]));
}

void read_setting(const yaml::Node& node, SsdTrainRun& run) {
  yaml::Map in = node.map();
  const std::int64_t gpus = in.count("gpus", 1);
  run.tensor_parallel = in.count_or("tensor_parallel", 1, 1);
  run.stages = in.count_or("stages", 1, 1);
  run.is_zero3 = in.flag_or("zero3", false);
  run.rate = in.quantity<FlopsPerSecond>("rate");
  const yaml::Node batch = in.at("batch");
  const std::int64_t of_all = batch.count(1);
  const std::int64_t of_replica = run.tensor_parallel * run.stages;
  if (of_replica < 1 || gpus % of_replica != 0) {
    node.problem(fmt::format("{} GPUs are not replicas of {} GPUs each", gpus, of_replica));
    return;
  }
  run.data_parallel = gpus / of_replica;
  if (of_all < 1 || of_all % run.data_parallel != 0) {
    batch.problem(fmt::format("is not divided by {} replicas", run.data_parallel));
    return;
  }
  const std::int64_t of_rank = of_all / run.data_parallel;
  run.micro_batch = largest_micro_batch(run, of_rank);
  run.accumulation = of_rank / run.micro_batch;
}

enum class Origin { exact, published, recalled };

void read_values(const yaml::Node& node, Origin origin, const SsdTrainRun& run,
                 const std::string& name, std::vector<ModelRow>& rows) {
  yaml::Map in = node.map();
  for (const Quantity& q : quantities) {
    const auto value = in.find(std::string(q.name));
    if (!value) continue;
    ModelRow row{.run = name,
                 .quantity = std::string(q.name),
                 .unit = std::string(q.unit),
                 .predicted = q.of(run),
                 .published = base_value(*value, q.unit),
                 .is_recalled = origin == Origin::recalled,
                 .gate = {}};
    if (origin == Origin::exact) row.gate = exact_gate;
    if (origin == Origin::published) row.gate = published_gate;
    rows.push_back(std::move(row));
  }
}

// A run with what is wrong in it has no sizes to predict from: rows come with the problem.
std::vector<ModelRow> read_run(const yaml::Node& node, const Runs& gpus, const Runs& networks,
                               std::string& name) {
  std::vector<ModelRow> rows;
  yaml::Map in = node.map();
  name = in.text("run");
  SsdTrainRun run = find_part(in.at("network"), networks);
  const SsdTrainRun gpu = find_part(in.at("gpu"), gpus);
  run.memory = gpu.memory;
  run.memory_bandwidth = gpu.memory_bandwidth;
  run.links = gpu.links;
  run.network = gpu.network;
  read_setting(in.at("setting"), run);
  for (const auto& [key, origin] : {std::pair("exact", Origin::exact),
                                    {"published", Origin::published},
                                    {"recalled", Origin::recalled}}) {
    if (const auto values = in.find(key)) read_values(*values, origin, run, name, rows);
  }
  if (node.is_map() && rows.empty()) node.problem("says nothing; give a quantity or more");
  return rows;
}

}  // namespace

bool ModelRow::is_missed() const { return gate && std::abs(relative_error()) > *gate; }

void add_model_runs(yaml::Value tree, Selection& selection, Published& result) {
  yaml::Document document(std::move(tree));
  {
    yaml::Map root = document.root().map();
    result.model_title = root.text("title");
    result.model_source = root.text("source");
    const Runs gpus = read_parts(root.at("gpus"), read_gpu);
    const Runs networks = read_parts(root.at("networks"), read_network);
    for (const yaml::Node& node : root.at("runs").items()) {
      std::string name;
      std::vector<ModelRow> rows = read_run(node, gpus, networks, name);
      if (selection.takes(name)) std::ranges::move(rows, std::back_inserter(result.model_rows));
    }
  }
  document.finish();
}

}  // namespace tidegate
