#include "cli/plan.hpp"

#include <algorithm>
#include <ostream>
#include <thread>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "cli/counts.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "models/base/files.hpp"
#include "sim/planner/compare.hpp"

namespace tidegate {
namespace {

using namespace planner;

// --hardware, the first of the overrides, is the machine that the batch is for, as in a scenario's
// file; it is none of those that are compared.
Job job_of(const PlanFlags& flags, const tidegate::Start& start, std::vector<Override> overrides) {
  ScenarioSource source = start.source;
  if (!flags.hardware.empty()) {
    source.root = scenario_values(source, {overrides.front()});
    overrides.erase(overrides.begin());
  }
  return planner::job_of(source, overrides, flags.tokens, flags.batch);
}

// What the workload is called in commands that run from here.
std::string workload_words(PlanFlags flags, const tidegate::Start& start) {
  flags.hardware.clear();
  return words_of(flags, start);
}

/// How far the comparison is, and what it does on the machine at hand.
class Progress {
 public:
  void begin(std::size_t done, std::size_t all, const std::string& name) {
    done_ = done, all_ = all, name_ = name;
    line_.show("machines", done_, all_, " (" + name_ + ")");
  }
  void show(const TuneOptions::Progress& p) {
    line_.show("machines", done_, all_, fmt::format(" ({}: {} {})", name_, p.doing, p.done));
  }
  void wipe() const { line_.wipe(); }

 private:
  ProgressLine line_;
  std::size_t done_ = 0, all_ = 0;
  std::string name_;
};

CompareOptions options_of(const PlanFlags& flags, Progress& progress) {
  CompareOptions options;
  options.days = flags.days;
  options.budget = flags.budget;
  options.simulates_all = flags.all;
  options.assess.simulations = flags.simulations;
  options.assess.threads =
      flags.threads > 0 ? flags.threads : std::max(1U, std::thread::hardware_concurrency());
  options.assess.margin = flags.margin / 100;
  options.assess.interval = {.draws = flags.draws,
                             .seed = flags.seed,
                             .threads = static_cast<std::int32_t>(options.assess.threads)};
  options.assess.is_stopped = was_interrupted;
  options.assess.progress = [&progress](const TuneOptions::Progress& p) { progress.show(p); };
  options.progress = [&progress](std::size_t done, std::size_t all, const std::string& name) {
    progress.begin(done, all, name);
  };
  return options;
}

int plan_command(const PlanFlags& flags) {
  std::vector<Override> overrides = overrides_of(flags);
  const tidegate::Start start = tidegate::start_of(flags, overrides, StartUse::workload);
  const Catalog catalog = read_catalog(find_catalog(flags.catalog));
  const Job job = job_of(flags, start, overrides);
  Progress progress;
  watch_interrupts();
  const Comparison comparison = compare_machines(catalog, job, options_of(flags, progress));
  progress.wipe();
  tell_start(start);
  const std::string words = workload_words(flags, start);
  if (!flags.csv.empty()) {
    write_atomically(flags.csv, [&](std::ostream& out) { out << to_csv(comparison); });
  }
  if (!flags.html.empty()) {
    write_atomically(flags.html, [&](std::ostream& out) {
      out << page::to_html(comparison_page(comparison, words));
    });
  }
  print(flags.json ? to_json(comparison) : to_text(comparison, words));
  return comparison.is_interrupted ? interrupted_code : 0;
}

void add_question_flags(CLI::App& plan, PlanFlags& flags) {
  add_start_flags(plan, flags);
  plan.remove_option(plan.get_option("--gpu-times"));
  plan.get_option("scenario")
      ->description(
          "scenario, or a file with its workload alone (then --batch), or a name of scenarios/");
  plan.get_option("--hf")->description(
      "Hugging Face config.json instead of a scenario; needs --batch, or --hardware");
  plan.get_option("--hardware")
      ->description("machine that the workload's batch is for; those compared are the catalog's");
  plan.add_option("--catalog", flags.catalog,
                  "machines with their prices (docs/plan.md): a file, or a name of catalogs/")
      ->type_name("FILE")
      ->required();
  plan.add_option("--tokens", flags.tokens, "of the run; 1e9 without it")
      ->check(CLI::Range(1.0, 1e18));
  plan.add_option("--days", flags.days, "that the run may take at most")
      ->check(CLI::Range(1e-6, 1e6));
  plan.add_option("--budget", flags.budget,
                  "money for purchase, energy and worn drives, or for rent, at most")
      ->check(CLI::Range(1e-6, 1e15));
  plan.add_option("--batch", flags.batch,
                  "sequences of an iteration; those of the scenario on its own machine without it")
      ->transform(count_in(1, 100'000'000));
}

void add_search_flags(CLI::App& plan, PlanFlags& flags) {
  plan.add_option("--simulations", flags.simulations,
                  "simulations of the search on each machine, at most; 16 without it")
      ->transform(count_in(1, 1'000'000));
  plan.add_flag("--all", flags.all, "also simulate machines whose bound is behind another's time");
  plan.add_option("--draws", flags.draws,
                  "machines drawn from each profile's uncertainties for an interval; none without")
      ->transform(count_in(2, 100'000));
  plan.add_option("--seed", flags.seed, "of the draws");
  plan.add_option("--margin", flags.margin, "percent within which machines are not told apart")
      ->check(CLI::Range(0.0, 50.0));
  plan.add_option("--threads", flags.threads, "threads; all cores without it")
      ->transform(count_in(1, 1024));
  add_output(plan, "--csv", flags.csv, "write a line per machine to this file");
  add_output(plan, "--html", flags.html, "write one HTML page to this file");
  plan.add_flag("--json", flags.json, "print JSON (docs/plan_json.md)");
}

}  // namespace

void add_plan(CLI::App& app, PlanFlags& flags, int& code) {
  CLI::App* plan = app.add_subcommand("plan", "compare machines to buy or rent, by time and money");
  add_question_flags(*plan, flags);
  add_search_flags(*plan, flags);
  plan->footer(
      "Examples:\n"
      "  tidegate plan zero_infinity_70b --catalog example_2026 --tokens 1e9\n"
      "  tidegate plan zero_infinity_70b --catalog example_2026 --tokens 1e9 --days 90 --html "
      "plan.html\n"
      "  tidegate plan llama31_8b_h200 --catalog my_machines.yaml --budget 150000 --draws 32\n"
      "  tidegate plan --hf config.json --catalog my_machines.yaml --seq 4096 --batch 64\n"
      "  tidegate plan --hf config.json --deepspeed ds_config.json --hardware a100_8gpu --catalog "
      "my_machines.yaml\n"
      "  tidegate plan workload.yaml --catalog my_machines.yaml --batch 512 --json\n"
      "Ctrl-C prints what was looked at so far (exit code 130).");
  plan->callback([&flags, &code] { code = plan_command(flags); });
}

}  // namespace tidegate
