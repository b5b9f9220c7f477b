#include "cli/tune.hpp"

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "cli/counts.hpp"
#include "cli/keys.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "models/base/error.hpp"
#include "models/base/files.hpp"
#include "sim/ranks/ranks.hpp"
#include "sim/search/explain.hpp"
#include "sim/search/limits.hpp"
#include "sim/search/parallel.hpp"
#include "sim/search/tune.hpp"
#include "sim/search/tune_page.hpp"

namespace tidegate {
namespace {

constexpr std::size_t default_simulations = 500;

std::size_t threads_of(const TuneFlags& flags, const Link* link) {
  if (flags.threads > 0) return flags.threads;
  const std::size_t here = link != nullptr ? link->size_here() : 1;
  return std::max<std::size_t>(1, std::thread::hardware_concurrency() / here);
}

std::unique_ptr<Evaluator> evaluator_of(const TuneFlags& flags) {
  std::vector<Override> overrides = overrides_of(flags);
  Start start = start_of(flags, overrides);
  return std::make_unique<Evaluator>(std::move(start.source), std::move(overrides));
}

TuneOptions options_of(const TuneFlags& flags, const Evaluator& evaluator, ProgressLine& line) {
  TuneOptions options;
  options.limits = read_limits(flags.limits, evaluator.scenario({}).machine);
  options.margin = flags.margin / 100;
  options.simulates_all = !flags.over.empty();
  if (flags.simulations > 0) {
    options.most_simulations = flags.simulations;
  } else {
    options.most_simulations =
        options.simulates_all ? static_cast<std::size_t>(-1) : default_simulations;
  }
  options.is_stopped = was_interrupted;
  options.progress = [&line](const TuneOptions::Progress& p) { line.show(p); };
  return options;
}

void check(const TuneFlags& flags) {
  if (flags.resumes && flags.results.empty())
    throw InputError("--resume: continues the file of --results FILE; give one");
  for (const std::string& over : flags.over) check_key("--over", over.substr(0, over.find('=')));
  if (!flags.over.empty() && !flags.only.empty())
    throw InputError("--only chooses from the usual space, --over gives another; keep one of them");
}

// The process that searches, alone or with those that serve it.
int search(const TuneFlags& flags, Link* link) {
  check(flags);
  std::vector<Override> overrides = overrides_of(flags);
  const Start start = start_of(flags, overrides);
  const auto evaluator = std::make_unique<Evaluator>(start.source, overrides);
  const Space space = flags.over.empty()
                          ? default_space(evaluator->scenario({}), evaluator->values(), flags.only)
                          : grid_of(flags.over, evaluator->values());
  ProgressLine line;
  const TuneOptions options = options_of(flags, *evaluator, line);
  const std::size_t threads = threads_of(flags, link);
  std::unique_ptr<Evaluators> evaluators;
  if (link != nullptr) {
    evaluators = std::make_unique<Ranks>(*link, *evaluator, threads);
  } else {
    evaluators = std::make_unique<Threads>(*evaluator, threads);
  }
  std::optional<ResultsLog> log;
  if (!flags.results.empty()) {
    log.emplace(flags.results, *evaluator,
                flags.resumes ? ResultsLog::Mode::resume : ResultsLog::Mode::fresh);
  }
  watch_interrupts();
  if (link != nullptr) watch_termination();  // what launchers make of Ctrl-C
  Tuning tuning = tune(*evaluators, space, options, log ? &*log : nullptr);
  line.wipe();
  tell_start(start);
  TuneReport report =
      report_tuning(*evaluator, std::move(tuning), "tidegate simulate " + words_of(flags, start));
  report.is_grid = options.simulates_all;
  for (const Axis& axis : space.axes) report.axes.push_back(axis.name);
  if (!flags.csv.empty()) {
    write_atomically(flags.csv, [&](std::ostream& out) { out << to_csv(report); });
  }
  if (!flags.html.empty()) {
    write_atomically(flags.html,
                     [&](std::ostream& out) { out << page::to_html(tune_page(report)); });
  }
  print(flags.json ? to_json(report) : to_text(report));
  return report.tuning.is_interrupted ? interrupted_code : 0;
}

// The other processes say nothing, and end when the first tells them to.
int tune_command(const TuneFlags& flags) {
  keep_freed_memory();
  const std::unique_ptr<Link> link = make_link();
  if (link == nullptr) return search(flags, nullptr);
  if (link->rank() == 0) {
    const StopOthers stops(*link);
    return search(flags, link.get());
  }
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  serve(*link, threads_of(flags, link.get()), [&] { return evaluator_of(flags); });
  return 0;
}

}  // namespace

void add_tune(CLI::App& app, TuneFlags& flags, int& code) {
  CLI::App* tune = app.add_subcommand("tune", "search for the fastest configuration that fits");
  add_start_flags(*tune, flags);
  tune->add_option("--over", flags.over,
                   "key=v1,v2,...: simulate every combination of these values")
      ->type_name("KEY=VALUES")
      ->allow_extra_args(false);
  tune->add_option("--only", flags.only,
                   "search these choices only: names or parts of them; may be repeated")
      ->delimiter(',')
      ->allow_extra_args(false);
  tune->add_option("--limit", flags.limits,
                   "gpu=SIZE, host=SIZE, PATH=SIZE, life=YEARS of drives, or changes=N")
      ->allow_extra_args(false);
  tune->add_option("--simulations", flags.simulations,
                   "simulations at most; 500 without it, and all of --over")
      ->transform(count_in(1, 10'000'000));
  tune->add_option("--margin", flags.margin, "percent within which times are not told apart")
      ->check(CLI::Range(0.0, 50.0));
  tune->add_option("--threads", flags.threads, "threads of each process; all cores without it")
      ->transform(count_in(1, 1024));
  add_output(*tune, "--results", flags.results, "append every finished simulation to this file");
  tune->add_flag("--resume", flags.resumes, "take over what the file of --results holds");
  add_output(*tune, "--csv", flags.csv, "write a table of the candidates to this file");
  add_output(*tune, "--html", flags.html, "write one HTML page to this file");
  tune->add_flag("--json", flags.json, "print JSON (docs/tune.md)");
  tune->footer(
      "Examples:\n"
      "  tidegate tune mlp_offload_70b\n"
      "  tidegate tune mlp_offload_70b --limit changes=2 --limit 'host=400 GiB'\n"
      "  tidegate tune llama31_8b_h200 --only activations,batch\n"
      "  tidegate tune zero_infinity_70b --over policy.optimizer.buffer_count=12,16,32 --over "
      "policy.optimizer.sub_group_size=5e7,1e8 --csv grid.csv\n"
      "  tidegate tune mixtral_zero_infinity_a100 --results tune.jsonl --resume\n"
      "  tidegate tune --hf config.json --deepspeed ds_config.json --hardware a100_8gpu\n"
      "  mpirun -n 8 tidegate tune mlp_offload_70b --threads 4\n"
      "Ctrl-C prints the best so far (exit code 130).");
  tune->callback([&flags, &code] { code = tune_command(flags); });
}

}  // namespace tidegate
