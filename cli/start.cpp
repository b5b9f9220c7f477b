#include "cli/start.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "cli/counts.hpp"
#include "cli/say.hpp"
#include "models/base/error.hpp"
#include "models/base/file_kind.hpp"
#include "sim/deepspeed/read.hpp"
#include "sim/deepspeed/write.hpp"
#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "sim/run/predict.hpp"
#include "sim/search/space.hpp"
#include "validate/gpu_times/factors.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;

void set_count(yaml::Value& root, const char* key, std::int64_t count, const char* flag) {
  if (count > 0) yaml::set(root, key, std::to_string(count), {flag, 0, 0});
}

bool has_hardware(const StartFlags& flags, const std::vector<Override>& overrides) {
  return !flags.hardware.empty() ||
         std::ranges::find(overrides, "hardware", &Override::first) != overrides.end();
}

void check_machine(const StartFlags& flags, const std::vector<Override>& overrides, StartUse use) {
  if (has_hardware(flags, overrides)) return;
  if (use == StartUse::prediction)
    throw InputError("--hf: needs a machine; add --hardware NODE, a profile of hw_profiles/");
  if (!flags.deepspeed.empty())
    throw InputError(
        "--deepspeed: is read against a machine, that of its batch; add --hardware NODE, a profile "
        "of hw_profiles/");
}

void check_flags(const StartFlags& flags, const std::vector<Override>& overrides, StartUse use) {
  const bool has_scenario = !flags.scenario.empty(), has_network = !flags.network.empty();
  if (!has_scenario && !has_network) {
    throw InputError(
        "nothing to start from; name a scenario, or give --hf config.json --hardware NODE");
  }
  if (has_scenario && has_network) {
    throw InputError(fmt::format(
        "--hf: stands beside the scenario {}; give one of them, or --set workload.config=FILE",
        flags.scenario));
  }
  if (has_network) {
    check_machine(flags, overrides, use);
    return;
  }
  const std::pair<const char*, std::int64_t> counts[] = {{"--seq", flags.sequence},
                                                         {"--micro-batch", flags.micro_batch},
                                                         {"--accumulation", flags.accumulation},
                                                         {"--ranks", flags.ranks}};
  const char* keys[] = {"workload.sequence", "workload.micro_batch", "workload.accumulation",
                        "ranks"};
  for (std::size_t i = 0; i < std::size(counts); ++i) {
    if (counts[i].second == 0) continue;
    throw InputError(fmt::format("{}: goes with --hf; of a scenario write --set {}={}",
                                 counts[i].first, keys[i], counts[i].second));
  }
}

// Hugging Face calls every file config.json; the folder has the network's name.
std::string title_of(const fs::path& config) {
  const std::string folder = fs::absolute(config).parent_path().filename().string();
  return config.stem() == "config" && !folder.empty() ? folder : config.stem().string();
}

ScenarioSource source_of_network(const StartFlags& flags, StartUse use) {
  const std::string path = not_a_folder(flags.network);
  const Network network = read_hugging_face(path);
  yaml::Value root{.kind = yaml::Value::Kind::map, .where = {path, 0, 0}};
  yaml::set(root, "workload.config", yaml::word(fs::absolute(path).lexically_normal().string()),
            {"--hf", 0, 0});
  set_count(root, "workload.sequence",
            flags.sequence > 0 ? flags.sequence : usual_sequence(network), "--seq");
  set_count(root, "workload.micro_batch", flags.micro_batch, "--micro-batch");
  set_count(root, "workload.accumulation", flags.accumulation, "--accumulation");
  set_count(root, "ranks", flags.ranks, "--ranks");
  if (use == StartUse::prediction) yaml::set(root, "policy", "{}", {"--hf", 0, 0});
  return {std::move(root), title_of(path), path};
}

yaml::Value& value_at(yaml::Value& map, const std::string& key) {
  const auto at = std::ranges::find(map.entries, key, &yaml::Entry::key);
  if (at != map.entries.end()) return at->value;
  map.entries.push_back({key, map.where, {}});
  return map.entries.back().value;
}

bool is_of(const std::string& key, const std::string& section) {
  return key == section || key.starts_with(section + ".");
}

// The scenario without a policy: what a ds_config.json is read for. Start-up follows the policy.
Scenario without_policy(const ScenarioSource& source, const std::vector<Override>& overrides) {
  ScenarioSource bare = source;
  std::erase_if(bare.root.entries, [](const yaml::Entry& e) { return e.key == "loading"; });
  value_at(bare.root, "policy") = yaml::Value{.kind = yaml::Value::Kind::map};
  std::vector<Override> rest;
  for (const Override& o : overrides) {
    if (!is_of(o.first, "policy") && !is_of(o.first, "loading")) rest.push_back(o);
  }
  return load_scenario(bare, rest);
}

DeepSpeedSetting setting_for(const StartFlags& flags, const Scenario& scenario) {
  const Workload& w = scenario.workload;
  DeepSpeedSetting setting{.data_parallel = data_parallel_of(scenario),
                           .micro_batch = {},
                           .accumulation = {},
                           .dtype = {},
                           .hidden = w.network.hidden,
                           .largest_tensor = 0,
                           .paths = {}};
  const bool is_scenario = flags.network.empty();
  if (is_scenario || flags.micro_batch > 0) setting.micro_batch = w.micro_batch;
  if (is_scenario || flags.accumulation > 0) setting.accumulation = w.accumulation;
  if (is_scenario) setting.dtype = name_of(w.dtype);
  for (const Parameter& p : parameters_in_order(build_graph(w)))
    setting.largest_tensor = std::max(setting.largest_tensor, p.elements);
  for (const StoragePath& path : scenario.machine.paths()) setting.paths.push_back(path.name);
  return setting;
}

// A flag that the file contradicts: the trainer refuses that as well.
void check_batch(const yaml::Value& file, const char* key, const char* flag, std::int64_t asked,
                 std::int64_t found) {
  if (asked == 0 || asked == found) return;
  const yaml::Value* value = file.find(key);
  throw InputError(value ? value->where : file.where, key,
                   fmt::format("is {}, and {} says {}; write auto here, or leave the flag out",
                               found, flag, asked));
}

void apply(const DeepSpeedRun& run, yaml::Value& root) {
  yaml::Value policy = run.policy;
  if (const yaml::Value* own = root.find("policy")) {
    for (const yaml::Entry& entry : own->entries) {
      if (entry.key == "activations" || entry.key == "pinned_allocations")
        policy.entries.push_back(entry);
    }
  }
  value_at(root, "policy") = std::move(policy);
  const Where& where = run.policy.where;
  yaml::set(root, "workload.micro_batch", std::to_string(run.micro_batch), where);
  yaml::set(root, "workload.accumulation", std::to_string(run.accumulation), where);
  yaml::set(root, "workload.dtype", run.dtype, where);
}

std::vector<std::string> sets_of(const DeepSpeedRun& run, const yaml::Value& root) {
  return {"policy=" + set_text(*root.find("policy")),
          fmt::format("workload.micro_batch={}", run.micro_batch),
          fmt::format("workload.accumulation={}", run.accumulation), "workload.dtype=" + run.dtype};
}

// Predicts once with the profile's kernel times, and scales them to those of the trace.
std::vector<std::string> take_gpu_times(const std::string& trace, const ScenarioSource& source,
                                        std::vector<Override>& overrides) {
  TracedSteps steps = steps_of(load_trace(not_a_folder(trace)), trace);
  Scenario scenario = load_scenario(source, overrides);
  const Prediction prediction = predict(scenario);
  const GpuTimes times =
      fit_gpu_times(std::move(steps), predicted_kernels(prediction, scenario.machine), prediction,
                    scenario.machine);
  overrides.insert(overrides.end(), times.overrides.begin(), times.overrides.end());
  return notes_of(times);
}

void say_activations(const ScenarioSource& source, const std::vector<Override>& overrides,
                     std::vector<Remark>& remarks) {
  const bool is_set = std::ranges::any_of(
      overrides, [](const Override& o) { return is_of(o.first, "policy.activations"); });
  const yaml::Value* policy = source.root.find("policy");
  if (is_set || (policy && policy->find("activations"))) return;
  add_remark(remarks, {RemarkKind::filled, source.root.where, "activations",
                       "the training script decides whether they are recomputed; kept here, "
                       "recomputed with --set policy.activations=recompute"});
}

}  // namespace

void add_start_flags(CLI::App& command, StartFlags& flags) {
  add_scenario_flags(command, flags);
  command.get_option("scenario")->required(false);
  command
      .add_option("--hf", flags.network,
                  "Hugging Face config.json instead of a scenario; needs --hardware")
      ->type_name("FILE");
  command
      .add_option("--deepspeed", flags.deepspeed,
                  "ds_config.json: policy, batch and data type (docs/deepspeed.md)")
      ->type_name("FILE");
  command
      .add_option("--gpu-times", flags.gpu_times,
                  "trace of torch.profiler whose kernel times replace the profile's "
                  "(docs/gpu_times.md)")
      ->type_name("FILE");
  const auto count = [&](const char* name, std::int64_t& value, const char* help) {
    command.add_option(name, value, help)->transform(count_in(1, 10'000'000));
  };
  count("--seq", flags.sequence, "with --hf: tokens per sequence, by default at most 4096");
  count("--micro-batch", flags.micro_batch, "with --hf: sequences per GPU and step");
  count("--accumulation", flags.accumulation, "with --hf: steps of an iteration");
  count("--ranks", flags.ranks, "with --hf: GPUs used per node, all by default");
}

namespace {

void take_deepspeed(const StartFlags& flags, const std::vector<Override>& overrides, Start& start) {
  const yaml::Value file = yaml::load_file(not_a_folder(flags.deepspeed));
  expect(FileKind::deepspeed, file);
  const Scenario bare = without_policy(start.source, overrides);
  DeepSpeedRun run = read_deepspeed(file, setting_for(flags, bare));
  check_batch(file, "train_micro_batch_size_per_gpu", "--micro-batch", flags.micro_batch,
              run.micro_batch);
  check_batch(file, "gradient_accumulation_steps", "--accumulation", flags.accumulation,
              run.accumulation);
  say_activations(start.source, overrides, run.remarks);
  apply(run, start.source.root);
  start.sets = sets_of(run, start.source.root);
  start.remarks = std::move(run.remarks);
}

}  // namespace

std::int64_t usual_sequence(const Network& network) {
  constexpr std::int64_t most = 4096;
  return network.context > 0 ? std::min(network.context, most) : most;
}

Start start_of(const StartFlags& flags, std::vector<Override>& overrides, StartUse use) {
  check_flags(flags, overrides, use);
  Start start{flags.network.empty() ? scenario_source(find_scenario(flags.scenario))
                                    : source_of_network(flags, use),
              {},
              {},
              {}};
  if (!flags.deepspeed.empty()) take_deepspeed(flags, overrides, start);
  if (!flags.gpu_times.empty())
    start.notes = take_gpu_times(flags.gpu_times, start.source, overrides);
  return start;
}

std::string words_of(const StartFlags& flags) {
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : " ") + word; };
  const auto count = [&](const char* flag, std::int64_t value) {
    if (value > 0) add(fmt::format("{} {}", flag, value));
  };
  if (!flags.scenario.empty()) add(shell_word(flags.scenario));
  if (!flags.network.empty()) add("--hf " + shell_word(flags.network));
  if (!flags.deepspeed.empty()) add("--deepspeed " + shell_word(flags.deepspeed));
  if (!flags.hardware.empty()) add("--hardware " + shell_word(flags.hardware));
  if (!flags.gpu_times.empty()) add("--gpu-times " + shell_word(flags.gpu_times));
  count("--seq", flags.sequence);
  count("--micro-batch", flags.micro_batch);
  count("--accumulation", flags.accumulation);
  count("--ranks", flags.ranks);
  for (const std::string& set : flags.sets) add("--set " + shell_word(set));
  return words;
}

std::string words_of(StartFlags flags, const Start& start) {
  flags.deepspeed.clear();
  flags.sets.insert(flags.sets.begin(), start.sets.begin(), start.sets.end());
  return words_of(flags);
}

void tell_start(const Start& start) {
  constexpr std::size_t width = 80, indent = 4;
  const auto list = [](const char* title, const std::vector<std::string>& lines) {
    std::string text = lines.empty() ? "" : std::string(title) + "\n";
    for (const std::string& line : lines)
      text += "  - " + wrap(line, width - indent, indent) + "\n";
    return text;
  };
  std::vector<std::string> remarks;
  for (const Remark& r : start.remarks) remarks.push_back(to_text(r));
  const std::string text =
      list("What DeepSpeed will make of this file", remarks) + list("Notes", start.notes);
  if (!text.empty()) say(text + "\n");
}

}  // namespace tidegate
