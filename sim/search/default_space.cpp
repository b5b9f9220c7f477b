#include <algorithm>
#include <cstdlib>
#include <functional>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/policy/policy.hpp"
#include "sim/search/space.hpp"

/// The table of what can be tuned. A line is a key with the values that are tried besides the
/// scenario's own.
namespace tidegate {
namespace {

using Values = std::vector<std::string>;

// Which values of a refined key have to be looked at for a bound: the least or most in order of
// size where the rest cannot be better, else any.
enum class Which { none, least, most, any };

struct Line {
  const char* key;
  Values values;
  const char* usual;  // what stands where the scenario says nothing
  const char* needs;  // an axis, and the options with which the key exists
  Values needed_tags;
  Which fastest = Which::none, lean_gpu = Which::none, lean_host = Which::none;
};

// MLP-Offload on a single path has nothing to share out.
constexpr const char* one_path = "mlp_offload on one path";
const Values swapped = {"zero_infinity", "mlp_offload", one_path};
const Values with_paths = {"mlp_offload", one_path};
const Values on_host = {"zero_offload", "twin_flow"};
const Values switched = {"false", "true"};

// Sizes and counts span what public configurations use (DeepSpeed's documentation and its tuning
// tool, the MLP-Offload scripts); the steps between are assumed. Larger sub-groups and more buffers
// leave more in host memory between updates, up to the remainder of a division: any.
const std::vector<Line>& lines() {
  static const std::vector<Line> table = {
      {.key = "policy.optimizer.ratio",
       .values = {"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9"},
       .usual = "0.5",
       .needs = "optimizer",
       .needed_tags = {"twin_flow"},
       .fastest = Which::any,
       .lean_gpu = Which::most,
       .lean_host = Which::least},
      {.key = "policy.optimizer.buffer_count",
       .values = {"12", "16", "20", "25", "32", "40", "50", "64"},
       .usual = "12",
       .needs = "optimizer",
       .needed_tags = swapped,
       .fastest = Which::most,
       .lean_host = Which::least},
      {.key = "policy.optimizer.sub_group_size",
       .values = {"25000000", "50000000", "100000000", "200000000", "400000000", "1000000000"},
       .usual = "100000000",
       .needs = "optimizer",
       .needed_tags = swapped,
       .fastest = Which::any,
       .lean_host = Which::least},
      {.key = "policy.optimizer.cache",
       .values = switched,
       .usual = "true",
       .needs = "optimizer",
       .needed_tags = with_paths,
       .fastest = Which::most},
      {.key = "policy.optimizer.delayed_gradients",
       .values = switched,
       .usual = "true",
       .needs = "optimizer",
       .needed_tags = with_paths,
       .fastest = Which::any,
       .lean_host = Which::least},
      {.key = "policy.optimizer.async_upload",
       .values = switched,
       .usual = "true",
       .needs = "optimizer",
       .needed_tags = with_paths,
       .fastest = Which::most},
      {.key = "policy.optimizer.exclusive",
       .values = switched,
       .usual = "true",
       .needs = "optimizer",
       .needed_tags = with_paths},
      {.key = "policy.optimizer.pin_memory",
       .values = switched,
       .usual = "true",
       .needs = "optimizer",
       .needed_tags = on_host,
       .lean_host = Which::any},
      {.key = "policy.parameters.buffer_count",
       .values = {"5", "10", "20"},
       .usual = "5",
       .needs = "parameters",
       .needed_tags = {"nvme"},
       .lean_host = Which::least},
      {.key = "policy.zero.reduce_bucket_size",
       .values = {"50000000", "100000000", "200000000", "500000000", "1000000000"},
       .usual = "500000000",
       .needs = "ZeRO stage",
       .needed_tags = {"1", "2", "3"},
       .lean_gpu = Which::least},
      {.key = "policy.zero.prefetch_bucket_size",
       .values = {"50000000", "100000000", "200000000", "500000000", "1000000000"},
       .usual = "50000000",
       .needs = "ZeRO stage",
       .needed_tags = {"3"}},
      {.key = "policy.zero.max_live_parameters",
       .values = {"500000000", "1000000000", "2000000000", "4000000000"},
       .usual = "1000000000",
       .needs = "ZeRO stage",
       .needed_tags = {"3"}},
      {.key = "policy.zero.max_reuse_distance",
       .values = {"0", "1000000000", "2000000000", "4000000000"},
       .usual = "1000000000",
       .needs = "ZeRO stage",
       .needed_tags = {"3"},
       .fastest = Which::most},
      {.key = "memory.expandable_segments",
       .values = switched,
       .usual = "false",
       .needs = "",
       .needed_tags = {}},
  };
  return table;
}

const yaml::Value* value_at(const yaml::Value& root, std::initializer_list<std::string_view> keys) {
  const yaml::Value* at = &root;
  for (const std::string_view key : keys) {
    at = at != nullptr && at->kind == yaml::Value::Kind::map ? at->find(key) : nullptr;
  }
  return at;
}

// Keys that go along when one optimizer takes the place of another of the same kind.
std::string kept_keys(const yaml::Value& values, std::string_view from, std::string_view to) {
  static const Values of_files = {"sub_group_size", "buffer_count", "pipeline_read",
                                  "pipeline_write", "aio"};
  static const Values of_host = {"sub_group_size", "pin_memory"};
  const auto kind = [](std::string_view name) -> const Values* {
    if (name == "zero_infinity" || name == "mlp_offload") return &of_files;
    if (name == "zero_offload" || name == "twin_flow") return &of_host;
    return nullptr;
  };
  const yaml::Value* section = value_at(values, {"policy", "optimizer"});
  std::string text;
  if (kind(from) == nullptr || kind(from) != kind(to)) return text;
  for (const std::string& key : *kind(to)) {
    const yaml::Value* now = section != nullptr && section->kind == yaml::Value::Kind::map
                                 ? section->find(key)
                                 : nullptr;
    if (now != nullptr) text += fmt::format(", {}: {}", key, set_text(*now));
  }
  return text;
}

std::vector<std::string> words_of(const Machine& machine) {
  std::vector<std::string> words;
  for (const StoragePath& path : machine.paths()) words.push_back(yaml::word(path.name));
  return words;
}

// Each path by itself, then all of them.
std::vector<std::string> path_lists(const Machine& machine) {
  std::vector<std::string> lists;
  std::string all;
  for (const std::string& word : words_of(machine)) {
    lists.push_back("[" + word + "]");
    all += (all.empty() ? "" : ", ") + word;
  }
  if (lists.size() > 1) lists.push_back("[" + all + "]");
  return lists;
}

Axis axis_of(std::string name, std::string tag) {
  return {.name = std::move(name), .options = {{std::move(tag), {}, true}}};
}

// A section that is only a name becomes a map as soon as one of its keys is set.
void open_section(Axis& axis, const yaml::Value& values, const char* section) {
  const yaml::Value* now = value_at(values, {"policy", section});
  if (now == nullptr || now->kind != yaml::Value::Kind::scalar) return;
  axis.options.front().opens =
      Override{std::string("policy.") + section, fmt::format("{{name: {}}}", now->text)};
}

void add(Axis& axis, const std::string& tag, std::vector<Override> sets) {
  axis.options.push_back({tag, std::move(sets), false});
}

Axis optimizer_axis(const Scenario& scenario, const yaml::Value& values) {
  const std::string mine = policy_name(values, "optimizer");
  const yaml::Value* paths = value_at(values, {"policy", "optimizer", "paths"});
  const bool is_on_one = mine == "mlp_offload" && paths != nullptr && paths->items.size() == 1;
  Axis axis = axis_of("optimizer", is_on_one ? one_path : mine);
  open_section(axis, values, "optimizer");
  const auto offer = [&](const std::string& name, const std::string& keys) {
    const std::string more = keys + kept_keys(values, mine, name);
    const bool is_one = keys.starts_with(", paths: [") && keys.find(", ", 2) == std::string::npos;
    add(axis, is_one ? one_path : name,
        {{"policy.optimizer", fmt::format("{{name: {}{}}}", name, more)}});
  };
  if (mine != "resident") offer("resident", "");
  if (mine != "zero_offload") offer("zero_offload", "");
  if (mine != "twin_flow") offer("twin_flow", ", ratio: 0.5");
  const yaml::Value* section = value_at(values, {"policy", "optimizer"});
  const auto stands = [&](const char* key, const std::string& text) {
    const yaml::Value* now = section != nullptr && section->kind == yaml::Value::Kind::map
                                 ? section->find(key)
                                 : nullptr;
    return now != nullptr && set_text(*now) == text;
  };
  for (const std::string& word : words_of(scenario.machine)) {
    if (mine != "zero_infinity" || !stands("path", word)) offer("zero_infinity", ", path: " + word);
  }
  for (const std::string& list : path_lists(scenario.machine)) {
    if (mine != "mlp_offload" || !stands("paths", list)) offer("mlp_offload", ", paths: " + list);
  }
  return axis;
}

Axis parameter_axis(const Scenario& scenario, const yaml::Value& values) {
  const std::string mine = policy_name(values, "parameters");
  Axis axis = axis_of("parameters", mine);
  open_section(axis, values, "parameters");
  for (const char* name : {"resident", "host"}) {
    if (mine != name) add(axis, name, {{"policy.parameters", name}});
  }
  for (const std::string& word : words_of(scenario.machine)) {
    const yaml::Value* now = value_at(values, {"policy", "parameters", "path"});
    if (mine == "nvme" && now != nullptr && set_text(*now) == word) continue;
    add(axis, "nvme", {{"policy.parameters", fmt::format("{{name: nvme, path: {}}}", word)}});
  }
  return axis;
}

Axis activation_axis(const Scenario& scenario, const yaml::Value& values) {
  const std::string mine = policy_name(values, "activations");
  const yaml::Value* section = value_at(values, {"policy", "activations"});
  const std::string now = section != nullptr ? set_text(*section) : "keep";
  Axis axis = axis_of("activations", mine);
  Values texts = {"keep", "{name: recompute, mode: selective}", "{name: recompute, mode: full}",
                  "{name: recompute, mode: full, every: 2}",
                  "{name: recompute, mode: full, every: 4}"};
  for (const std::string& list : path_lists(scenario.machine)) {
    texts.push_back(fmt::format("{{name: ssdtrain, to: {}}}", list));
  }
  texts.emplace_back("{name: ssdtrain, to: host}");
  for (const std::string& text : texts) {
    const bool is_same = text == now || (text == "{name: recompute, mode: full}" &&
                                         (now == "recompute" || now == "{name: recompute}"));
    const std::string tag = text.starts_with('{') ? text.substr(7, text.find(',') - 7) : text;
    if (!is_same) add(axis, tag, {{"policy.activations", text}});
  }
  return axis;
}

Axis stage_axis(const Scenario& scenario) {
  const std::int64_t mine = scenario.policy.zero.stage;
  Axis axis = axis_of("ZeRO stage", std::to_string(mine));
  for (std::int64_t stage = 0; stage <= 3; ++stage) {
    const std::string text = std::to_string(stage);
    if (stage != mine) add(axis, text, {{"policy.zero.stage", text}});
  }
  return axis;
}

// Divisions of the GPUs and of the batch at the same sequences per iteration. Pipelines are offered
// where ZeRO allows them today: with stage 2 or 3 they would ask for two changes at once.
Axis batch_axis(const Scenario& scenario) {
  const Workload& w = scenario.workload;
  Axis axis = axis_of("batch and parallelism", "");
  if (!w.explicit_layers.empty()) return axis;
  const std::int64_t gpus = std::int64_t{scenario.machine.nodes()} * scenario.ranks;
  const std::int64_t data = gpus / (w.tensor_parallel * w.pipeline_parallel);
  const std::int64_t sequences = data * w.micro_batch * w.accumulation;
  for (std::int64_t t = 1; t <= scenario.ranks; t *= 2) {
    for (std::int64_t p = 1; p <= gpus / t; p *= 2) {
      const bool is_offered = p == w.pipeline_parallel || scenario.policy.zero.stage < 2;
      const std::int64_t ranks = gpus / (t * p);
      if (!is_offered || gpus % (t * p) != 0 || sequences % ranks != 0) continue;
      for (std::int64_t m = 1; m <= 64 && m <= sequences / ranks; m *= 2) {
        const std::int64_t a = sequences / ranks / m;
        const bool is_today =
            t == w.tensor_parallel && p == w.pipeline_parallel && m == w.micro_batch;
        if (is_today || sequences % (ranks * m) != 0) continue;
        std::vector<Override> sets = {{"workload.micro_batch", std::to_string(m)},
                                      {"workload.accumulation", std::to_string(a)}};
        if (t != w.tensor_parallel) {
          sets.emplace_back("workload.tensor_parallel", std::to_string(t));
          sets.emplace_back("workload.sequence_parallel", t > 1 ? "true" : "false");
        }
        if (p != w.pipeline_parallel)
          sets.emplace_back("workload.pipeline_parallel", std::to_string(p));
        add(axis, "", std::move(sets));
      }
    }
  }
  return axis;
}

// Shares of two or more paths: by their bandwidth, equal, and the others of the published runs.
Axis assignment_axis(const Scenario& scenario) {
  Axis axis = axis_of("policy.optimizer.assignment", "");
  axis.needs = "optimizer", axis.needed_tags = {"mlp_offload"};
  Values texts = {"proportional"};
  if (scenario.machine.paths().size() == 2) {
    for (const char* shares : {"[1, 1]", "[3, 2]", "[2, 1]", "[3, 1]", "[4, 1]", "[1, 2]"})
      texts.push_back(fmt::format("{{shares: {}}}", shares));
    texts.emplace_back("{modulo: 3}");
  }
  for (const std::string& text : texts) add(axis, text, {{"policy.optimizer.assignment", text}});
  return axis;
}

std::string scalar_text(const yaml::Value& values, std::string_view key) {
  const yaml::Value* at = &values;
  for (std::size_t from = 0; at != nullptr && from <= key.size();) {
    const std::size_t end = std::min(key.find('.', from), key.size());
    at = at->kind == yaml::Value::Kind::map ? at->find(key.substr(from, end - from)) : nullptr;
    from = end + 1;
  }
  return at != nullptr && at->kind == yaml::Value::Kind::scalar ? at->text : "";
}

double size_of(const std::string& value) {
  if (value == "true" || value == "false") return value == "true" ? 1 : 0;
  return std::strtod(value.c_str(), nullptr);
}

std::vector<std::uint16_t> chosen(Which which, const std::vector<double>& sizes) {
  std::vector<std::uint16_t> options;
  const auto at = [&](auto found) { return static_cast<std::uint16_t>(found - sizes.begin()); };
  if (which == Which::least) options = {at(std::ranges::min_element(sizes))};
  if (which == Which::most) options = {at(std::ranges::max_element(sizes))};
  for (std::size_t i = 0; which == Which::any && i < sizes.size(); ++i)
    options.push_back(static_cast<std::uint16_t>(i));
  return options;
}

// Options from the largest value down.
std::vector<std::uint16_t> descending(const std::vector<double>& sizes) {
  std::vector<std::uint16_t> options = chosen(Which::any, sizes);
  std::ranges::stable_sort(options, std::greater{}, [&](std::uint16_t o) { return sizes[o]; });
  return options;
}

Axis refined_axis(const Line& line, const yaml::Value& values) {
  Axis axis = axis_of(line.key, "");
  axis.needs = line.needs, axis.needed_tags = line.needed_tags;
  const std::string written = scalar_text(values, line.key);
  std::vector<double> sizes = {size_of(written.empty() ? line.usual : written)};
  for (const std::string& value : line.values) {
    if (size_of(value) == sizes.front()) continue;
    add(axis, value, {{line.key, value}});
    sizes.push_back(size_of(value));
  }
  axis.fastest = chosen(line.fastest, sizes);
  axis.lean_gpu = chosen(line.lean_gpu, sizes);
  axis.lean_host = chosen(line.lean_host, sizes);
  if (line.fastest == Which::most && line.lean_host == Which::least)
    axis.ever_leaner = descending(sizes);
  return axis;
}

void keep_only(Space& space, const std::vector<std::string>& only) {
  if (only.empty()) return;
  std::vector<std::string> names;
  for (const Axis& axis : space.axes) names.push_back(axis.name);
  const auto is_named = [](const std::string& axis, const std::string& word) {
    return axis.find(word) != std::string::npos;
  };
  for (const std::string& word : only) {
    if (std::ranges::any_of(names, [&](const auto& n) { return is_named(n, word); })) continue;
    const std::string near = nearest(word, names);
    std::string text = fmt::format("--only {}: there is no such choice", word);
    if (!near.empty()) text += fmt::format("; did you mean '{}'?", near);
    text += "; those of this scenario:";
    for (const std::string& name : names) text += "\n  " + name;
    throw InputError(text);
  }
  for (Axis& axis : space.axes) {
    const bool is_wanted =
        std::ranges::any_of(only, [&](const auto& w) { return is_named(axis.name, w); });
    if (is_wanted) continue;
    axis.options.resize(1);
    axis.fastest.clear(), axis.lean_gpu.clear(), axis.lean_host.clear();
    axis.ever_leaner.clear();
  }
}

// Crosses everything where that is little.
void cross_all_of_few(Space& space) {
  constexpr double few = 2000;
  double most = 1;
  for (const Axis& axis : space.axes) most *= static_cast<double>(axis.options.size());
  if (most <= few) space.crossed = space.axes.size();
}

}  // namespace

std::string policy_name(const yaml::Value& values, std::string_view section) {
  const yaml::Value* node = value_at(values, {"policy", section});
  if (node != nullptr && node->kind == yaml::Value::Kind::scalar) return node->text;
  const yaml::Value* name = value_at(values, {"policy", section, "name"});
  if (name != nullptr && name->kind == yaml::Value::Kind::scalar) return name->text;
  for (const PolicyEntry& entry : policy_table()) {
    if (entry.section == section) return std::string(entry.name);
  }
  return "";
}

Space default_space(const Scenario& scenario, const yaml::Value& values,
                    const std::vector<std::string>& only) {
  Space space;
  space.axes = {optimizer_axis(scenario, values), parameter_axis(scenario, values),
                activation_axis(scenario, values), stage_axis(scenario), batch_axis(scenario)};
  space.crossed = space.axes.size();
  if (scenario.machine.paths().size() > 1) {
    Axis axis = assignment_axis(scenario);
    for (std::uint16_t i = 0; i < axis.options.size(); ++i) axis.fastest.push_back(i);
    space.axes.push_back(std::move(axis));
  }
  for (const Line& line : lines()) space.axes.push_back(refined_axis(line, values));
  keep_only(space, only);
  cross_all_of_few(space);
  return space;
}

}  // namespace tidegate
