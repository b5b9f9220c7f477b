#include "cli/validate_run.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "calib/rig/interrupt.hpp"
#include "cli/blas.hpp"
#include "cli/common.hpp"
#include "cli/counts.hpp"
#include "cli/outputs.hpp"
#include "cli/say.hpp"
#include "cli/validate_train.hpp"
#include "models/base/error.hpp"
#include "models/base/files.hpp"
#include "sim/report/trace.hpp"
#include "validate/compare/comparison.hpp"
#include "validate/cuda/cuda_devices.hpp"
#include "validate/native/native.hpp"
#include "validate/page/comparison_page.hpp"
#include "validate/suite/suite.hpp"
#include "validate/suite/trial.hpp"

namespace tidegate {
namespace {

constexpr int interrupted = 130;  // as shells count SIGINT

struct RigFlags {
  std::vector<std::string> storage;
  bool native = false, paced = false, json = false;
  int tries = 0;  ///< 0: the usual number
  std::int32_t draws = 0;
  std::uint64_t seed = 7;
  std::string html;
};
struct RunFlags : ScenarioFlags, RigFlags {
  double scale = 1, gate = 0.08;
  bool gpu = false;
  std::string trace;
  TrainFlags training;
};
struct SuiteFlags : RigFlags {
  std::string only, file, hardware;
  bool ungated = false;
};

void add_rig_flags(CLI::App& command, RigFlags& flags, const char* tries) {
  CLI::Option* native =
      command.add_flag("--native", flags.native, "every work as fast as this machine does it");
  command
      .add_flag("--paced", flags.paced,
                "every work for real, devices held to the profile's speeds (the default)")
      ->excludes(native);
  command
      .add_option("--storage", flags.storage,
                  "folder for a storage path, in the profile's order; given once, for all")
      ->type_name("DIR");
  command.add_option("--tries", flags.tries, tries)->transform(count_in(1, 100));
  command
      .add_option("--draws", flags.draws,
                  "machines drawn from the profile's uncertainties for the prediction's interval")
      ->transform(count_in(2, 100'000));
  command.add_option("--seed", flags.seed,
                     "of the draws, of the order of cases, of what is trained");
  add_output(command, "--html", flags.html, "write the comparison as one HTML page to this file");
  command.add_flag("--json", flags.json, "print JSON (docs/run_json.md)");
}

TrialOptions trial_of(const RigFlags& flags, int tries) {
  return {.pace = flags.native ? Pace::native : Pace::paced,
          .storage = flags.storage,
          .tries = flags.tries > 0 ? flags.tries : tries,
          .draws = flags.draws,
          .seed = flags.seed};
}

void write_page(const std::string& path, const page::Page& page) {
  if (path.empty()) return;
  write_atomically(path, [&](std::ostream& out) { out << page::to_html(page); });
}

// Ctrl-C ends the works under way and the threads; scratch files have no names.
template <class Command>
int interruptible(Command&& command) {
  const rig::InterruptScope scope;
  try {
    return command();
  } catch (const rig::Interrupted&) {
    say("interrupted; no scratch file is left\n");
    return interrupted;
  }
}

int code_of(Verdict verdict) {
  constexpr int inconclusive = 5;
  switch (verdict) {
    case Verdict::agrees:
      return 0;
    case Verdict::differs:
      return 1;
    case Verdict::inconclusive:
      return inconclusive;
  }
  return 1;
}

int run_command(const RunFlags& flags) {
  if (flags.training.train) {
    return train_command(flags, flags.storage, flags.training, flags.gpu, flags.seed, flags.trace,
                         flags.json);
  }
  if (flags.gpu && !flags.native) {
    throw InputError(
        "--gpu: is of --native, whose works a GPU then does, or of --train, which it then "
        "computes; "
        "give one of them");
  }
  if (flags.native) use_blas_well();
  Scenario scenario = load_scenario(find_scenario(flags.scenario), overrides_of(flags));
  TrialOptions options = trial_of(flags, 1);
  if (flags.gpu) options.devices = cuda_devices();
  options.scale = flags.scale;
  options.gate = flags.gate;
  const RealTrial trial = run_trial(scenario, options);
  const Expected& e = trial.expected;
  if (!flags.trace.empty()) {
    const std::array runs = {TracedRun{"predicted", &e.predicted},
                             TracedRun{"measured", &trial.measured.timeline}};
    write_atomically(flags.trace, [&](std::ostream& out) {
      write_trace(out, e.plan, runs, e.demands, e.resources, scenario.allocator);
    });
  }
  write_page(flags.html,
             page::comparison_page(scenario.name, scenario.machine.name(), e.plan, e.predicted,
                                   trial.measured.timeline, trial.comparison));
  print(flags.json ? to_json(trial.comparison) : to_text(trial.comparison));
  return code_of(trial.comparison.verdict);
}

// On a terminal one line that changes; else a line for each, half a minute apart at least.
class Progress {
 public:
  void operator()(const std::string& doing) {
    if (isatty(STDERR_FILENO) != 0) {
      say_line(doing);
    } else if (const auto now = std::chrono::steady_clock::now(); now >= next_) {
      say(doing + "\n");
      next_ = now + std::chrono::seconds(30);
    }
  }
  static void wipe() { say_line(""); }

 private:
  std::chrono::steady_clock::time_point next_{};
};

int native_command(const SuiteFlags& flags) {
  use_blas_well();
  NativeOptions options{.file = flags.file,
                        .only = flags.only,
                        .hardware = flags.hardware,
                        .storage = flags.storage,
                        .seed = flags.seed,
                        .is_gated = !flags.ungated};
  if (flags.tries > 0) options.rounds = options.floor_runs = flags.tries;
  options.least_clean = std::min(options.least_clean, options.rounds);
  if (flags.draws > 0) options.draws = flags.draws;
  options.progress = Progress();
  const NativeSuite suite = run_native(options);
  Progress::wipe();
  write_page(flags.html, page::native_page(suite));
  print(flags.json ? to_json(suite) : to_text(suite));
  return code_of(suite.verdict());
}

int suite_command(const SuiteFlags& flags) {
  if (flags.native) return native_command(flags);
  if (!flags.hardware.empty()) {
    throw InputError("--hardware is for --native; the cases of the paced suite name their profile");
  }
  SuiteOptions options{.file = flags.file, .only = flags.only, .trial = trial_of(flags, 3)};
  options.progress = Progress();
  const Suite suite = run_suite(options);
  Progress::wipe();
  write_page(flags.html, page::suite_page(suite));
  print(flags.json ? to_json(suite) : to_text(suite));
  return code_of(suite.verdict());
}

}  // namespace

void add_validate_run(CLI::App& validate, int& code) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* run = validate.add_subcommand("run", "run a scenario's plan for real, and compare");
  add_scenario_flags(*run, *flags);
  add_rig_flags(*run, *flags,
                "runs at most, until the machine is calm; the calmest counts (usually 1)");
  run->add_option("--scale", flags->scale, "part of all bytes, kernels and times that is run")
      ->check(CLI::Range(1e-6, 1.0))
      ->capture_default_str();
  run->add_option("--gate", flags->gate, "largest error of the iteration that agrees")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  add_output(*run, "--trace", flags->trace,
             "write both timelines for ui.perfetto.dev to this file");
  run->add_flag(
      "--gpu", flags->gpu,
      "with --native: GPUs are those of this machine, a rank each: their kernels, copies, "
      "collectives and memory; with --train: the first one computes, primitive by primitive from "
      "host memory, right and not fast; else host memory and the CPU stand for them");
  add_train_flags(*run, flags->training);
  run->footer(
      "Examples:\n"
      "  tidegate validate run ssdtrain_paced --storage /tmp\n"
      "  tidegate validate run train_small --storage /tmp --train --steps 20\n"
      "  tidegate validate run ssdtrain_paced --storage /tmp --set policy.activations=keep --trace "
      "both.json\n"
      "  tidegate validate run my_scenario.yaml --hardware my_node.yaml --storage /mnt/nvme0 "
      "--native "
      "--gpu\n"
      "  tidegate validate run train_small --storage /tmp --train --gpu\n"
      "The machine needs the memory of the plan's buffers; files have no name and go with the "
      "run.\n"
      "With --gpu, collectives need NCCL. Files straight to GPU memory take cuFile, or, where "
      "there "
      "is\n"
      "none, pinned host memory, which the result tells.\n"
      "Exit code 1 when prediction and measurement differ by more than the gate, or training is "
      "not the same; 130 on Ctrl-C.");
  run->callback([flags, &code] { code = interruptible([&] { return run_command(*flags); }); });
}

void add_validate_suite(CLI::App& validate, int& code) {
  const auto flags = std::make_shared<SuiteFlags>();
  CLI::App* suite =
      validate.add_subcommand("suite", "run many policies for real: mean and worst error");
  add_rig_flags(*suite, *flags,
                "paced: runs at most, until the machine is calm; the calmest counts (usually 3). "
                "native: clean runs wanted of each case (usually 5)");
  suite->add_flag("--ungated", flags->ungated,
                  "native: count samples and runs beside other work too; the report says so");
  suite->add_option("--hardware", flags->hardware,
                    "native: a profile of this machine that tidegate calib wrote, instead of "
                    "measuring now");
  suite->add_option("--case", flags->only, "only cases whose name contains this");
  suite->add_option("--file", flags->file, "cases of this file instead of those that ship")
      ->type_name("FILE");
  suite->footer(
      "Examples:\n"
      "  tidegate validate suite --storage /tmp\n"
      "  tidegate validate suite --storage /tmp --case SSDTrain --json\n"
      "  tidegate validate suite --native --storage /mnt/nvme0 --html native.html\n"
      "A native suite measures this machine's rates and runs every case, five times in turn; runs\n"
      "beside other work do not count. Each run is predicted with the rates just before and after\n"
      "it: the median error of that has a gate of 10 %. Beside it stands the error of forecasts\n"
      "with the rates before all runs. It writes some 250 GB to the drive.\n"
      "Exit code 1 when an error is outside its gate, 5 when too few native cases have clean runs, "
      "130 on Ctrl-C.");
  suite->callback([flags, &code] { code = interruptible([&] { return suite_command(*flags); }); });
}

}  // namespace tidegate
