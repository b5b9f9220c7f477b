#include "cli/validate_log.hpp"

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "cli/common.hpp"
#include "cli/start.hpp"
#include "models/base/error.hpp"
#include "sim/report/words.hpp"
#include "sim/run/predict.hpp"
#include "validate/log/comparison.hpp"
#include "validate/log/log.hpp"

namespace tidegate {
namespace {

struct LogFlags : StartFlags {
  std::string log;
  std::optional<double> gate;
  bool json = false;
};

std::string same_start(const LogFlags& flags) {
  StartFlags rest = flags;
  rest.scenario.clear();
  const std::string words = words_of(rest);
  return (flags.scenario.empty() ? "" : " --scenario " + shell_word(flags.scenario)) +
         (words.empty() ? "" : " " + words);
}

// With the log's settings when they differ, else where the prediction hangs.
std::vector<std::string> next_commands(const LogFlags& flags, const LogComparison& c) {
  std::string sets;
  for (const LogMismatch& m : c.mismatches) {
    const std::size_t end = m.how.find(',');
    if (m.how.starts_with("--set ") && m.how.find("=N") == std::string::npos)
      sets += " " + m.how.substr(0, end);
  }
  std::vector<std::string> next;
  if (!sets.empty())
    next.push_back("tidegate validate log " + shell_word(flags.log) + same_start(flags) + sets);
  next.push_back("tidegate simulate " + words_of(flags) + sets);
  return next;
}

int log_command(const LogFlags& flags) {
  if (flags.scenario.empty() && flags.network.empty())
    throw InputError(
        "validate log: nothing to compare with; add --scenario S, or --hf config.json "
        "--hardware NODE");
  const TrainingLog log = load_log(not_a_folder(flags.log));
  std::vector<Override> overrides = overrides_of(flags);
  const Start start = start_of(flags, overrides);
  Scenario scenario = load_scenario(start.source, overrides);
  const Prediction prediction = predict(scenario);
  LogComparison comparison = compare(log, scenario, prediction.report);
  comparison.notes.insert(comparison.notes.end(), start.notes.begin(), start.notes.end());
  for (const Remark& r : start.remarks) comparison.notes.push_back(to_text(r));
  comparison.next = next_commands(flags, comparison);
  print(flags.json ? to_json(comparison) : to_text(comparison));
  const LogRow* iteration = comparison.row("iteration");
  if (!flags.gate || !iteration) return 0;
  const double error = std::abs(iteration->error().value_or(0));
  const bool is_within = error <= *flags.gate;
  if (!flags.json) {
    print(fmt::format("The iteration's error of {:.3g} % is {} the gate of {:g} %.\n", 100 * error,
                      is_within ? "within" : "beyond", 100 * *flags.gate));
  }
  return is_within ? 0 : 1;
}

}  // namespace

void add_validate_log(CLI::App& validate, int& code) {
  const auto flags = std::make_shared<LogFlags>();
  CLI::App* command = validate.add_subcommand(
      "log", "the log of a DeepSpeed, Megatron or Trainer run, beside the prediction");
  command->add_option("log", flags->log, "what the run printed (docs/logs.md)")
      ->type_name("FILE")
      ->required();
  add_start_flags(*command, *flags);
  command->remove_option(command->get_option("scenario"));
  command
      ->add_option("--scenario", flags->scenario,
                   "scenario of the run: a file, or the name of one in scenarios/")
      ->type_name("SCENARIO");
  command
      ->add_option("--gate", flags->gate,
                   "largest error of the iteration for exit code 0, as a fraction: 0.1 is 10 %")
      ->check(CLI::Range(0.0, 10.0));
  command->add_flag("--json", flags->json, "print JSON (docs/logs.md)");
  command->footer(
      "Examples:\n"
      "  tidegate validate log train.log --scenario zero_infinity_70b\n"
      "  tidegate validate log train.log --hf config.json --deepspeed ds_config.json --hardware "
      "a100_8gpu\n"
      "DeepSpeed logs times with \"wall_clock_breakdown\": true, memory with \"memory_breakdown\": "
      "true.\n"
      "Exit code 1 when a --gate is given and missed.");
  command->callback([flags, &code] { code = log_command(*flags); });
}

}  // namespace tidegate
