#include "sim/run/changes.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/policy/swapped_optimizer.hpp"
#include "sim/report/words.hpp"
#include "sim/run/overfull.hpp"

namespace tidegate {
namespace {

constexpr const char* stage_key = "policy.zero.stage";

using Changes = std::vector<Change>;

std::string text_of(std::int64_t n) { return std::to_string(n); }

// `sets`, and the stage that they need.
std::vector<Override> with_stage(const Overfull& now, std::int64_t least,
                                 std::vector<Override> sets) {
  if (now.scenario().policy.zero.stage < least) sets.emplace_back(stage_key, text_of(least));
  return sets;
}

// A name with one storage path, or with all of them: the options that policies of files need.
std::vector<std::string> with_paths(const Overfull& now, std::string_view name) {
  std::vector<std::string> texts;
  std::string all;
  for (const StoragePath& path : now.scenario().machine.paths()) {
    const std::string word = yaml::word(path.name);
    texts.push_back(fmt::format("{{name: {}, path: {}}}", name, word));
    all += (all.empty() ? "" : ", ") + word;
  }
  if (texts.size() > 1) texts.push_back(fmt::format("{{name: {}, paths: [{}]}}", name, all));
  return texts;
}

void other_activations(const Overfull& now, Changes& changes) {
  if (!now.holds({"activation", "checkpoint"})) return;
  const auto add = [&](const std::string& what, const std::string& text) {
    changes.push_back({what, {{"policy.activations", text}}});
  };
  for (const PolicyEntry& entry : policy_table()) {
    if (entry.section != "activations") continue;
    if (entry.name == "recompute") {
      add("run the attention core again in backward", "{name: recompute, mode: selective}");
      add("run every block again in backward", "{name: recompute, mode: full}");
      add("run every block again in backward, from the input of every second",
          "{name: recompute, mode: full, every: 2}");
    } else if (entry.name != now.policy("activations")) {
      for (const std::string& text : activation_texts(entry.name, now.scenario().machine)) {
        add(fmt::format("activations {}", entry.help), text);
        changes.back().instead_of = entry.name;
      }
    }
  }
}

void smaller_batches(const Overfull& now, Changes& changes) {
  const Workload& w = now.scenario().workload;
  if (!now.holds({"activation", "checkpoint", "workspace"}) || !w.explicit_layers.empty()) return;
  for (std::int64_t part = 2; w.micro_batch % part == 0; part *= 2) {
    changes.push_back(
        {fmt::format("micro-batch {} in {} micro-steps, not {} in {}", w.micro_batch / part,
                     w.accumulation * part, w.micro_batch, w.accumulation),
         {{"workload.micro_batch", text_of(w.micro_batch / part)},
          {"workload.accumulation", text_of(w.accumulation * part)}}});
  }
}

void leaner_kernels(const Overfull& now, Changes& changes) {
  const Workload& w = now.scenario().workload;
  if (!now.holds({"activation", "checkpoint", "workspace"}) || !w.explicit_layers.empty()) return;
  const auto add = [&](bool has, const char* key, const char* what) {
    if (!has) changes.push_back({what, {{std::string("workload.kernels.") + key, "true"}}});
  };
  add(w.kernels.flash_attention, "flash_attention", "attention without a score matrix in memory");
  add(w.kernels.fused_cross_entropy, "fused_cross_entropy", "a loss that keeps no logits");
  add(w.kernels.fused_activation, "fused_activation", "activation functions run again in backward");
  add(w.kernels.fused_norm, "fused_norm", "norms that save their input once");
}

// Refused where ranks are data-parallel only.
void tensor_parallelism(const Overfull& now, Changes& changes) {
  const Workload& w = now.scenario().workload;
  if (!w.explicit_layers.empty()) return;
  if (w.tensor_parallel > 1 && !w.sequence_parallel) {
    changes.push_back({"sequence parallelism", {{"workload.sequence_parallel", "true"}}});
  }
  changes.push_back({"twice the tensor parallelism, and twice the micro-steps",
                     {{"workload.tensor_parallel", text_of(2 * w.tensor_parallel)},
                      {"workload.accumulation", text_of(2 * w.accumulation)}}});
}

void higher_stages(const Overfull& now, Changes& changes) {
  if (!now.gpu_holds({"optimizer", "gradient", "parameters"})) return;
  for (std::int64_t stage = now.scenario().policy.zero.stage + 1; stage <= 3; ++stage) {
    changes.push_back({"", {{stage_key, text_of(stage)}}});
  }
}

void smaller_buckets(const Overfull& now, Changes& changes) {
  const ZeroOptions& zero = now.scenario().policy.zero;
  const auto add = [&](const char* what, const char* key, std::int64_t size) {
    if (size > 0) changes.push_back({what, {{std::string("policy.zero.") + key, text_of(size)}}});
  };
  if (now.gpu_holds({"reduce bucket", "flat bucket"})) {
    for (const std::int64_t part : {2, 10})
      add("smaller buckets of gradients", "reduce_bucket_size", zero.reduce_bucket / part);
  }
  if (now.gpu_holds({"gathered parameters"})) {
    add("fewer parameters gathered at a time", "max_live_parameters", zero.max_live / 4);
    add("fewer parameters gathered ahead", "prefetch_bucket_size", zero.prefetch_bucket / 10);
    add("gathered parameters kept for less long", "max_reuse_distance",
        zero.max_reuse_distance / 4);
  }
}

void other_optimizers(const Overfull& now, Changes& changes) {
  if (!now.holds({"optimizer", "gradient", "swap buffers"})) return;
  const auto add = [&](const char* what, std::int64_t stage, const std::string& text) {
    changes.push_back({what, with_stage(now, stage, {{"policy.optimizer", text}})});
  };
  const std::string mine = now.policy("optimizer");
  if (mine != "resident") add("optimizer states and Adam on the GPU", 0, "resident");
  if (mine != "zero_offload") add("optimizer states and Adam on the host", 1, "zero_offload");
  for (const double ratio : now.host_shares()) {
    changes.push_back(
        {fmt::format("{:.0f} % of the optimizer on the host, the rest on the GPU", 100 * ratio),
         with_stage(now, 1,
                    {mine == "twin_flow"
                         ? Override{"policy.optimizer.ratio", fmt::format("{:.1f}", ratio)}
                         : Override{"policy.optimizer",
                                    fmt::format("{{name: twin_flow, ratio: {:.1f}}}", ratio)}})});
  }
  for (const std::string& text : with_paths(now, "zero_infinity"))
    if (mine != "zero_infinity") add("optimizer states on storage, Adam on the host", 3, text);
  for (const std::string& text : with_paths(now, "mlp_offload"))
    if (mine != "mlp_offload")
      add("optimizer states over all storage paths, Adam on the host", 3, text);
}

void other_parameters(const Overfull& now, Changes& changes) {
  if (!now.holds({"parameter"})) return;
  const std::string mine = now.policy("parameters");
  const auto add = [&](const char* what, std::int64_t stage, const std::string& text) {
    changes.push_back({what, with_stage(now, stage, {{"policy.parameters", text}})});
  };
  if (mine != "resident") add("parameters on the GPU", 0, "resident");
  if (mine != "host") add("parameters in host memory", 3, "host");
  if (mine == "nvme") return;
  for (const std::string& text : with_paths(now, "nvme")) add("parameters on storage", 3, text);
}

// What the update of a swapped optimizer holds at once; DeepSpeed stops with fewer.
std::int64_t least_buffers(const Overfull& now) {
  SwapOptions options;
  options.is_read_pipelined = now.flag("pipeline_read", true);
  options.is_write_pipelined = now.flag("pipeline_write", true);
  options.has_delayed_gradients =
      now.policy("optimizer") == "mlp_offload" && now.flag("delayed_gradients", true);
  return buffers_needed(options);
}

// Of the optimizer and parameter policies that read files or pin buffers.
void smaller_buffers(const Overfull& now, Changes& changes) {
  const auto halves = [&](const char* what, const std::string& key, std::int64_t value,
                          std::int64_t least) {
    for (const std::int64_t part : {2, 4}) {
      const std::int64_t fewer = std::max(value / part, least);
      if (fewer < value) changes.push_back({what, {{key, text_of(fewer)}}});
    }
  };
  if (now.host_holds({"swap buffers", "fp32 gradient buffer"})) {
    const std::int64_t least = least_buffers(now);
    halves("fewer buffers", "policy.optimizer.buffer_count", now.option("buffer_count", least),
           least);
    halves("smaller sub-groups", "policy.optimizer.sub_group_size",
           now.option("sub_group_size", 100'000'000), 1);
  }
  if (now.host_holds({"parameter buffers"})) {
    changes.push_back({"fewer parameter buffers", {{"policy.parameters.buffer_count", "2"}}});
  }
  const std::string mine = now.policy("optimizer");
  if ((mine == "zero_offload" || mine == "twin_flow") && now.host_holds({"optimizer states"})) {
    changes.push_back({"states that are not pinned, so not rounded to powers of two",
                       {{"policy.optimizer.pin_memory", "false"}}});
    if (now.scenario().policy.zero.stage == 3 && now.policy("parameters") == "resident") {
      changes.push_back({"", {{stage_key, "2"}}});
    }
  }
}

void other_paths(const Overfull& now, Changes& changes) {
  std::string all, capacities;
  for (const StoragePath& path : now.scenario().machine.paths()) {
    const std::string word = yaml::word(path.name);
    all += (all.empty() ? "" : ", ") + word;
    capacities += fmt::format("{}{:.0f}", capacities.empty() ? "" : ", ", path.capacity.value());
    if (!now.is_full(path.name)) {
      const std::string what = "files on " + path.name;
      changes.push_back({"optimizer " + what, {{"policy.optimizer.path", word}}});
      changes.push_back({"optimizer " + what, {{"policy.optimizer.paths", "[" + word + "]"}}});
      changes.push_back({"parameter " + what, {{"policy.parameters.path", word}}});
    }
  }
  changes.push_back({"optimizer files over all storage paths by their capacity",
                     {{"policy.optimizer.paths", "[" + all + "]"},
                      {"policy.optimizer.assignment", "{shares: [" + capacities + "]}"}}});
}

bool is_within(const std::string& inner, const std::string& outer) {
  return inner.starts_with(outer) && inner.size() > outer.size() && inner[outer.size()] == '.';
}

}  // namespace

std::vector<std::string> activation_texts(std::string_view name, const Machine& machine) {
  std::vector<std::string> texts = {std::string(name)};
  for (const StoragePath& path : machine.paths()) {
    texts.push_back(fmt::format("{{name: {}, to: [{}]}}", name, yaml::word(path.name)));
  }
  texts.push_back(fmt::format("{{name: {}, to: host}}", name));
  return texts;
}

std::string describe(const Change& change) {
  std::vector<std::string> parts = {change.what};
  for (const auto& [key, text] : change.sets) {
    if (key == stage_key) parts.push_back("ZeRO stage " + text);
  }
  return join(parts, "; ");
}

std::vector<Change> changes_for(const Prediction& p, const Scenario& scenario,
                                const yaml::Value& values) {
  const Overfull now(p, scenario, values);
  Changes changes;
  if (now.is_gpu_full()) {
    // Refused where the allocator has no such option.
    changes.push_back({"expandable segments", {{"memory.expandable_segments", "true"}}});
    leaner_kernels(now, changes);
  }
  other_activations(now, changes);
  higher_stages(now, changes);
  smaller_buckets(now, changes);
  smaller_buffers(now, changes);
  if (now.is_storage_full()) other_paths(now, changes);
  other_optimizers(now, changes);
  other_parameters(now, changes);
  smaller_batches(now, changes);
  if (now.is_gpu_full()) tensor_parallelism(now, changes);
  return changes;
}

std::optional<Change> both(const Change& a, const Change& b) {
  Change sum{.what = join({a.what, b.what}, "; "), .sets = a.sets};
  for (const Override& set : b.sets) {
    const auto at = std::ranges::find(sum.sets, set.first, &Override::first);
    if (at == sum.sets.end()) {
      for (const auto& [key, text] : a.sets) {
        if (is_within(key, set.first) || is_within(set.first, key)) return std::nullopt;
      }
      sum.sets.push_back(set);
    } else if (set.first == stage_key) {
      at->second = std::max(at->second, set.second);
    } else if (at->second != set.second) {
      return std::nullopt;
    }
  }
  return sum;
}

}  // namespace tidegate
