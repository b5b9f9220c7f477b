#include "cli/validate_deepspeed.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "cli/counts.hpp"
#include "cli/say.hpp"
#include "cli/start.hpp"
#include "models/base/error.hpp"
#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "sim/run/predict.hpp"
#include "validate/log/comparison.hpp"
#include "validate/log/log.hpp"
#include "validate/peer/peer.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;

struct PeerFlags : StartFlags {
  std::string out, storage, python = "python3";
  std::int64_t iterations = 10;
  bool run = false, json = false;
};

// As validate log takes them.
std::string log_words(const PeerFlags& flags) {
  return (flags.scenario.empty() ? "" : "--scenario ") + words_of(flags);
}

std::string command_text(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(shell_word(word));
  return join(quoted, " ");
}

std::string log_of(const PeerFlags& flags) { return (fs::path(flags.out) / "train.log").string(); }

std::string written_text(const PeerFlags& flags, const PeerFiles& files, std::int64_t ranks) {
  std::string text =
      fmt::format("Written: train.py, scenario.json, ds_config.json in {}\n", flags.out);
  for (const Remark& r : files.remarks) text += "  - " + wrap(to_text(r), 76, 4) + "\n";
  return text + "\nNext\n  " + command_text(peer_command(flags.python, flags.out, ranks)) + " > " +
         shell_word(log_of(flags)) + " 2>&1\n  tidegate validate log " + shell_word(log_of(flags)) +
         " " + log_words(flags) + "\n";
}

int compare_run(const PeerFlags& flags, Scenario& scenario) {
  const std::string log = log_of(flags);
  const std::vector<std::string> command = peer_command(flags.python, flags.out, scenario.ranks);
  say(fmt::format("Running {}; it prints to {}\n", command_text(command), log));
  if (const int code = run_logged(command, log); code != 0)
    throw MachineError(
        fmt::format("DeepSpeed ended with code {}; the end of {} says why", code, log));
  LogComparison comparison = compare(load_log(log), scenario, predict(scenario).report);
  comparison.next = {"tidegate validate log " + shell_word(log) + " " + log_words(flags),
                     "tidegate calib --storage DIR -o node.yaml   (a profile of this machine)"};
  print(flags.json ? to_json(comparison) : to_text(comparison));
  return 0;
}

int deepspeed_command(const PeerFlags& flags) {
  std::vector<Override> overrides = overrides_of(flags);
  const Start start = start_of(flags, overrides);
  tell_start(start);
  const ScenarioSource& source = start.source;
  Scenario scenario = load_scenario(source, overrides);
  const std::string swap =
      flags.storage.empty() ? (fs::path(flags.out) / "swap").string() : flags.storage;
  const PeerFiles files = peer_files(
      scenario_values(source, overrides), scenario,
      {.swap = fs::absolute(swap).lexically_normal().string(), .iterations = flags.iterations});
  if (flags.run && deepspeed_version(flags.python).empty())
    throw MachineError(fmt::format(
        "{}: has no DeepSpeed; install it (pip install deepspeed), name another --python, or leave "
        "--run out and run the script elsewhere",
        flags.python));
  write_peer(flags.out, files);
  if (flags.run) return compare_run(flags, scenario);
  print(written_text(flags, files, scenario.ranks));
  return 0;
}

}  // namespace

void add_validate_deepspeed(CLI::App& validate, int& code) {
  const auto flags = std::make_shared<PeerFlags>();
  CLI::App* command = validate.add_subcommand(
      "deepspeed", "write a scenario as a DeepSpeed training script, run it, and compare");
  add_start_flags(*command, *flags);
  command->add_option("--out", flags->out, "new folder for the script, its files and its log")
      ->required();
  CLI::Option* run =
      command->add_flag("--run", flags->run, "run it here, with the DeepSpeed that is installed");
  command->add_option("--python", flags->python, "Python that has DeepSpeed")
      ->capture_default_str();
  command->add_option("--storage", flags->storage,
                      "folder for what is kept on drives, by default swap in --out");
  command->add_option("--iterations", flags->iterations, "iterations that the script trains")
      ->transform(count_in(2, 100'000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print JSON (docs/logs.md)")->needs(run);
  command->footer(
      "Examples:\n"
      "  tidegate validate deepspeed llama2_7b_zero_offload_4090 --out run1\n"
      "  tidegate validate deepspeed small.yaml --out run2 --run --python venv/bin/python "
      "--storage "
      "/mnt/nvme\n"
      "The script trains on random tokens with the CPU where there is no GPU.");
  command->callback([flags, &code] { code = deepspeed_command(*flags); });
}

}  // namespace tidegate
