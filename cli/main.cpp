#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "cli/aio.hpp"
#include "cli/calib.hpp"
#include "cli/common.hpp"
#include "cli/completion.hpp"
#include "cli/counts.hpp"
#include "cli/explain.hpp"
#include "cli/export.hpp"
#include "cli/outputs.hpp"
#include "cli/plan.hpp"
#include "cli/plot.hpp"
#include "cli/say.hpp"
#include "cli/start.hpp"
#include "cli/tune.hpp"
#include "cli/unexpected.hpp"
#include "cli/validate_deepspeed.hpp"
#include "cli/validate_log.hpp"
#include "cli/validate_published.hpp"
#include "cli/validate_run.hpp"
#include "models/base/error.hpp"
#include "models/base/files.hpp"
#include "sim/graph/inspect.hpp"
#include "sim/graph/workload.hpp"
#include "sim/page/report_page.hpp"
#include "sim/plan/plan.hpp"
#include "sim/policy/policy.hpp"
#include "sim/report/report.hpp"
#include "sim/report/table.hpp"
#include "sim/report/trace.hpp"
#include "sim/report/words.hpp"
#include "sim/run/elasticity.hpp"
#include "sim/run/fixes.hpp"
#include "sim/run/interval.hpp"
#include "sim/run/predict.hpp"

/// The executable: reads flags, calls one stage after the other, prints. Exit codes: 0 an answer
/// ("does not fit" is one), 1 a check that failed, 2 the input is wrong, 3 the machine, 4 our own
/// bug, 5 a comparison that shows nothing because the machine was not quiet.
namespace tidegate {
namespace {

struct SimulateFlags : StartFlags {
  std::int32_t iterations = 0;
  std::string trace, plan, html;
  bool json = false, no_fixes = false;
  IntervalOptions interval;
};

std::vector<Override> overrides_of(const SimulateFlags& flags) {
  std::vector<Override> overrides = overrides_of(static_cast<const ScenarioFlags&>(flags));
  if (flags.iterations > 0) overrides.emplace_back("iterations", std::to_string(flags.iterations));
  return overrides;
}

// Commands that run as they stand: this one with one thing changed.
std::vector<std::string> next_commands(const SimulateFlags& flags, const Scenario& scenario,
                                       const Report& report) {
  const std::string same = "tidegate simulate " + words_of(flags);
  SimulateFlags twice = flags;
  std::erase_if(twice.sets,
                [](const std::string& set) { return set.starts_with("workload.accumulation="); });
  twice.sets.push_back(fmt::format("workload.accumulation={}", 2 * scenario.workload.accumulation));
  std::string first = "tidegate simulate " + words_of(twice);
  if (report.fixes && !report.fixes->found.empty()) {
    first = same;
    for (const std::string& set : report.fixes->found.front().sets)
      first += " --set " + shell_word(set);
  } else if (!report.fits) {
    first = "tidegate tune " + words_of(flags) + "   (searches further for what fits)";
  }
  return {first, same + " --trace trace.json   (open it in ui.perfetto.dev)",
          "tidegate validate published"};
}

// 0 wipes it away.
void show_progress(std::int32_t tried) {
  say_line(tried > 0 ? fmt::format("Looking for changes that fit: {} simulated", tried) : "");
}

int simulate_command(const SimulateFlags& flags) {
  std::vector<Override> overrides = overrides_of(flags);
  const Start start = start_of(flags, overrides);
  Scenario scenario = load_scenario(start.source, overrides);
  Prediction p = predict(scenario);
  p.report.facts.notes.insert(p.report.facts.notes.end(), start.notes.begin(), start.notes.end());
  add_elasticities(p);
  if (flags.interval.draws > 0) add_interval(scenario, p, flags.interval);
  if (!p.report.fits && !flags.no_fixes) {
    p.report.fixes = find_fixes(start.source, overrides, p, {.progress = show_progress});
    show_progress(0);
  }
  if (!flags.plan.empty()) {
    write_atomically(flags.plan, [&](std::ostream& out) { out << dump(p.plan); });
  }
  if (!flags.trace.empty()) {
    write_atomically(flags.trace, [&](std::ostream& out) {
      write_trace(out, p.plan, p.timeline, p.demands, scenario.machine.resources(),
                  scenario.allocator);
    });
  }
  for (const Remark& r : start.remarks) {
    p.report.facts.engine_remarks.push_back(
        {std::string(name_of(r.kind)), r.key, to_text(r.where), r.text});
  }
  p.report.facts.next = next_commands(flags, scenario, p.report);
  if (!flags.html.empty()) {
    write_atomically(flags.html, [&](std::ostream& out) {
      out << page::to_html(page::report_page(p.report, p.plan, p.timeline));
    });
  }
  print(flags.json ? to_json(p.report) : to_text(p.report));
  return 0;
}

struct InspectFlags {
  std::string config;
  std::int64_t sequence = 0, micro_batch = 1;
  bool json = false;
};

int inspect_command(const InspectFlags& flags) {
  Workload workload;
  workload.network = read_hugging_face(not_a_folder(flags.config));
  workload.sequence = flags.sequence > 0 ? flags.sequence : usual_sequence(workload.network);
  workload.micro_batch = flags.micro_batch;
  print(flags.json ? inspect_json(workload) : inspect_text(workload));
  return 0;
}

int policies_command() {
  Table table{.header = {"section", "name", "what it does"}, .rows = {}, .align = {}};
  table.align.assign(3, Align::left);
  for (const PolicyEntry& e : policy_table()) {
    table.rows.push_back({std::string(e.section), std::string(e.name), std::string(e.help)});
  }
  print(to_text(table) + "\nKeys of each: docs/scenario.md\n");
  return 0;
}

void add_simulate(CLI::App& app, SimulateFlags& flags, int& code) {
  CLI::App* sim =
      app.add_subcommand("simulate", "predict a scenario: speed, memory, what holds it back");
  add_start_flags(*sim, flags);
  sim->add_option("--iterations", flags.iterations, "iterations to simulate")
      ->transform(count_in(1, most_iterations));
  add_output(*sim, "--trace", flags.trace, "write a timeline for ui.perfetto.dev to this file");
  add_output(*sim, "--html", flags.html, "write the report as one HTML page to this file");
  add_output(*sim, "--plan", flags.plan, "write the plan to this file, a line per task");
  sim->add_option("--draws", flags.interval.draws,
                  "machines drawn from the profile's uncertainties for the interval; 0: none")
      ->transform(count_in(0, 100'000));
  sim->add_option("--seed", flags.interval.seed, "of the draws");
  sim->add_flag("--no-fixes", flags.no_fixes, "do not look for changes when the run does not fit");
  sim->add_flag("--json", flags.json, "print JSON (docs/report_json.md)");
  sim->footer(
      "Examples:\n"
      "  tidegate simulate scenarios/mlp_offload_70b.yaml\n"
      "  tidegate simulate llama31_8b_h200 --hardware a100_8gpu\n"
      "  tidegate simulate --hf config.json --deepspeed ds_config.json --hardware a100_8gpu --seq "
      "4096\n"
      "  tidegate simulate mlp_offload_70b --set policy.optimizer.buffer_count=32 --set "
      "machine.paths.nvme.count=2\n"
      "  tidegate simulate zero_infinity_70b --set 'machine.paths.nvme.write=7 GB/s' --trace "
      "trace.json");
  sim->callback([&flags, &code] { code = simulate_command(flags); });
}

void add_inspect(CLI::App& app, InspectFlags& flags, int& code) {
  CLI::App* inspect =
      app.add_subcommand("inspect", "show a network: parameters, FLOPs, saved bytes");
  inspect->add_option("config", flags.config, "Hugging Face config.json")
      ->type_name("FILE")
      ->required();
  inspect->add_option("--seq", flags.sequence, "tokens per sequence")
      ->transform(count_in(1, 10'000'000));
  inspect->add_option("--micro-batch", flags.micro_batch, "sequences per step and GPU")
      ->transform(count_in(1, 1'000'000));
  inspect->add_flag("--json", flags.json, "print JSON");
  inspect->footer(
      "Examples:\n"
      "  tidegate inspect scenarios/configs/llama-3.1-8b.json\n"
      "  tidegate inspect scenarios/configs/mixtral-8x7b-v0.1.json --seq 8192 --micro-batch 2 "
      "--json");
  inspect->callback([&flags, &code] { code = inspect_command(flags); });
}

void add_policies(CLI::App& app, int& code) {
  CLI::App* policies = app.add_subcommand("policies", "list the offload policies");
  policies->footer("Example:\n  tidegate policies");
  policies->callback([&code] { code = policies_command(); });
}

void add_validate(CLI::App& app, int& code) {
  CLI::App* validate = app.add_subcommand("validate", "hold predictions against measurements");
  validate->footer(
      "Examples:\n  tidegate validate published\n  tidegate validate field\n"
      "  tidegate validate suite --storage /tmp");
  add_published(*validate, code);
  add_field(*validate, code);
  add_validate_run(*validate, code);
  add_validate_suite(*validate, code);
  add_validate_log(*validate, code);
  add_validate_deepspeed(*validate, code);
  validate->callback([validate] {
    if (validate->get_subcommands().empty()) print(validate->help());
  });
}

std::string command_line(int argc, char** argv) {
  std::string text;
  for (int i = 0; i < argc; ++i)
    text += (i > 0 ? " " : "") + shell_word(i > 0 ? argv[i] : "tidegate");
  return text;
}

// Help is no error.
int tell(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_answer = error.get_exit_code() == 0;
  if (!is_speaker()) return is_answer ? 0 : fail_silently();
  app.exit(error);
  return is_answer ? 0 : 2;
}

int run(int argc, char** argv) {
  CLI::App app{"Tidegate predicts the speed and memory of offloaded training before it runs."};
  app.set_version_flag("--version", fmt::format("tidegate {} ({})", TIDEGATE_VERSION, revision()));
  app.footer(
      "Examples:\n"
      "  tidegate simulate scenarios/mlp_offload_70b.yaml\n"
      "  tidegate simulate scenarios/mlp_offload_70b.yaml --set policy.optimizer.cache=false "
      "--json\n"
      "  tidegate inspect scenarios/configs/llama-2-7b.json\n"
      "  tidegate tune mlp_offload_70b --limit changes=2\n"
      "  tidegate plan zero_infinity_70b --catalog example_2026 --tokens 1e9 --days 90\n"
      "  tidegate plot rok llama31_8b_h200 -o rok.svg\n"
      "  tidegate validate published\n"
      "What a key or a word of a report means: tidegate explain policy.optimizer\n"
      "Help of a command: tidegate simulate --help\n"
      "Exit codes: 0 an answer, \"does not fit\" included; 1 a check failed; 2 wrong input;\n"
      "3 machine error; 4 internal error; 5 inconclusive; 130 interrupted, with what was found");
  int code = 0;
  SimulateFlags simulate_flags;
  InspectFlags inspect_flags;
  PlotFlags plot_flags;
  CalibFlags calib_flags;
  calib_flags.command = command_line(argc, argv);
  calib_flags.argv = argv;
  TuneFlags tune_flags;
  PlanFlags plan_flags;
  ExportFlags export_flags;
  ExplainFlags explain_flags;
  add_simulate(app, simulate_flags, code);
  add_inspect(app, inspect_flags, code);
  add_policies(app, code);
  add_plot(app, plot_flags);
  add_calib(app, calib_flags, code);
  add_tune(app, tune_flags, code);
  add_plan(app, plan_flags, code);
  add_export(app, export_flags);
  add_aio(app);
  add_validate(app, code);
  add_explain(app, explain_flags);
  add_schema(app);
  add_completion(app);
  if (is_completing(argc, argv)) return complete(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    if (!is_speaker()) return fail_silently();
    say(unexpected_text(app));
    return 2;
  } catch (const CLI::ParseError& error) {
    return tell(app, error);
  }
  if (app.get_subcommands().empty()) print(app.help());
  return code;
}

}  // namespace
}  // namespace tidegate

int main(int argc, char** argv) {
  // A closed pipe is seen where it is written to (print), not as a signal.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return tidegate::run(argc, argv);
  } catch (...) {
    return tidegate::tell_failure();
  }
}
