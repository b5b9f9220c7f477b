#include "cli/validate_run.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "calib/rig/interrupt.hpp"
#include "cli/common.hpp"
#include "cli/validate_train.hpp"
#include "models/base/files.hpp"
#include "sim/report/trace.hpp"
#include "validate/compare/comparison.hpp"
#include "validate/suite/suite.hpp"
#include "validate/suite/trial.hpp"

namespace tidegate {
namespace {

constexpr int interrupted = 130;  // as shells count SIGINT

struct RigFlags {
  std::vector<std::string> storage;
  bool native = false, paced = false, json = false;
  int tries = 1;
};
struct RunFlags : ScenarioFlags, RigFlags {
  double scale = 1, gate = 0.08;
  std::string trace;
  TrainFlags training;
};
struct SuiteFlags : RigFlags {
  std::string only, file;
};

void add_rig_flags(CLI::App& command, RigFlags& flags, int tries) {
  flags.tries = tries;
  CLI::Option* native =
      command.add_flag("--native", flags.native, "every work as fast as this machine does it");
  command
      .add_flag("--paced", flags.paced,
                "every work for real, devices held to the profile's speeds (the default)")
      ->excludes(native);
  command.add_option("--storage", flags.storage,
                     "folder for a storage path, in the profile's order; given once, for all");
  command
      .add_option("--tries", flags.tries,
                  "runs at most, until the machine is calm; the calmest counts")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_flag("--json", flags.json, "print JSON (docs/run_json.md)");
}

TrialOptions trial_of(const RigFlags& flags) {
  return {.pace = flags.native ? Pace::native : Pace::paced,
          .storage = flags.storage,
          .tries = flags.tries};
}

// Ctrl-C ends the works under way and the threads; scratch files have no names.
template <class Command>
int interruptible(Command&& command) {
  const rig::InterruptScope scope;
  try {
    return command();
  } catch (const rig::Interrupted&) {
    fmt::print(stderr, "interrupted; no file is left\n");
    return interrupted;
  }
}

int run_command(const RunFlags& flags) {
  if (flags.training.train) return train_command(flags, flags.storage, flags.training, flags.trace, flags.json);
  Scenario scenario = load_scenario(find_scenario(flags.scenario), overrides_of(flags));
  TrialOptions options = trial_of(flags);
  options.scale = flags.scale;
  options.gate = flags.gate;
  const Trial trial = run_trial(scenario, options);
  if (!flags.trace.empty()) {
    const std::array runs = {TracedRun{"predicted", &trial.predicted},
                             TracedRun{"measured", &trial.measured.timeline}};
    write_atomically(flags.trace, [&](std::ostream& out) {
      write_trace(out, trial.plan, runs, trial.demands, trial.resources, scenario.allocator);
    });
  }
  print(flags.json ? to_json(trial.comparison) : to_text(trial.comparison));
  return trial.comparison.verdict == Verdict::differs ? 1 : 0;
}

void show_case(const std::string& name) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r\033[K{}", name);
  std::fflush(stderr);
}

int suite_command(const SuiteFlags& flags) {
  SuiteOptions options{.file = flags.file, .only = flags.only, .trial = trial_of(flags)};
  options.progress = show_case;
  const Suite suite = run_suite(options);
  if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r\033[K");
  print(flags.json ? to_json(suite) : to_text(suite));
  return suite.holds() ? 0 : 1;
}

}  // namespace

void add_validate_run(CLI::App& validate, int& code) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* run = validate.add_subcommand("run", "run a scenario's plan for real, and compare");
  add_scenario_flags(*run, *flags);
  add_rig_flags(*run, *flags, 1);
  run->add_option("--scale", flags->scale, "part of all bytes, kernels and times that is run")
      ->check(CLI::Range(1e-6, 1.0))
      ->capture_default_str();
  run->add_option("--gate", flags->gate, "largest error of the iteration that agrees")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  run->add_option("--trace", flags->trace, "write both timelines for ui.perfetto.dev to this file");
  add_train_flags(*run, flags->training);
  run->footer(
      "Examples:\n"
      "  tidegate validate run ssdtrain_paced --storage /tmp\n"
      "  tidegate validate run train_small --storage /tmp --train --steps 20\n"
      "  tidegate validate run ssdtrain_paced --storage /tmp --set policy.activations=keep --trace "
      "both.json\n"
      "The machine needs the memory of the plan's buffers; files have no name and go with the "
      "run.\n"
      "Exit code 1 when prediction and measurement differ by more than the gate, or training is "
      "not the same; 130 on Ctrl-C.");
  run->callback([flags, &code] { code = interruptible([&] { return run_command(*flags); }); });
}

void add_validate_suite(CLI::App& validate, int& code) {
  const auto flags = std::make_shared<SuiteFlags>();
  CLI::App* suite =
      validate.add_subcommand("suite", "run many policies for real: mean and worst error");
  add_rig_flags(*suite, *flags, 3);
  suite->add_option("--case", flags->only, "only cases whose name contains this");
  suite->add_option("--file", flags->file, "cases of this file instead of those that ship");
  suite->footer(
      "Examples:\n"
      "  tidegate validate suite --storage /tmp\n"
      "  tidegate validate suite --storage /tmp --case SSDTrain --json\n"
      "Exit code 1 when a mean or worst error is outside its gate, 130 on Ctrl-C.");
  suite->callback([flags, &code] { code = interruptible([&] { return suite_command(*flags); }); });
}

}  // namespace tidegate
