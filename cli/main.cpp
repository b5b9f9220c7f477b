#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "models/base/error.hpp"
#include "models/base/files.hpp"
#include "sim/graph/inspect.hpp"
#include "sim/graph/workload.hpp"
#include "sim/plan/plan.hpp"
#include "sim/policy/policy.hpp"
#include "sim/report/report.hpp"
#include "sim/report/table.hpp"
#include "sim/report/trace.hpp"
#include "sim/run/predict.hpp"
#include "validate/published.hpp"

/// The executable: reads flags, calls one stage after the other, prints. Exit codes: 0 an answer
/// ("does not fit" is one), 1 a check that failed, 2 the input is wrong, 3 the machine, 4 our own bug.
namespace tidegate {
namespace {

struct SimulateFlags {
  std::string scenario;
  std::vector<std::string> sets;
  std::int32_t iterations = 0;
  std::string trace, plan;
  bool json = false;
};

std::vector<Override> overrides_of(const SimulateFlags& flags) {
  std::vector<Override> overrides;
  for (const std::string& text : flags.sets) overrides.push_back(read_override(text));
  if (flags.iterations > 0) overrides.emplace_back("iterations", std::to_string(flags.iterations));
  return overrides;
}

int simulate_command(const SimulateFlags& flags) {
  Scenario scenario = load_scenario(flags.scenario, overrides_of(flags));
  Prediction p = predict(scenario);
  if (!flags.plan.empty()) {
    write_atomically(flags.plan, [&](std::ostream& out) { out << dump(p.plan); });
  }
  if (!flags.trace.empty()) {
    write_atomically(flags.trace, [&](std::ostream& out) {
      write_trace(out, p.plan, p.timeline, p.demands, scenario.machine.resources());
    });
  }
  p.report.facts.next = {
      fmt::format("tidegate simulate {} --set policy.optimizer.buffer_count=16", flags.scenario),
      fmt::format("tidegate simulate {} --trace trace.json   (open it in ui.perfetto.dev)", flags.scenario),
      "tidegate validate published"};
  std::cout << (flags.json ? to_json(p.report) : to_text(p.report));
  return 0;
}

struct InspectFlags {
  std::string config;
  std::int64_t sequence = 0, micro_batch = 1;
  bool json = false;
};

int inspect_command(const InspectFlags& flags) {
  Workload workload;
  workload.network = read_hugging_face(flags.config);
  constexpr std::int64_t usual = 4096;
  const std::int64_t longest = workload.network.max_positions > 0 ? workload.network.max_positions : usual;
  workload.sequence = flags.sequence > 0 ? flags.sequence : std::min(longest, usual);
  workload.micro_batch = flags.micro_batch;
  std::cout << (flags.json ? inspect_json(workload) : inspect_text(workload));
  return 0;
}

int policies_command() {
  Table table{.header = {"section", "name", "what it does"}, .rows = {}, .align = {}};
  table.align.assign(3, Align::left);
  for (const PolicyEntry& e : policy_table()) {
    table.rows.push_back({std::string(e.section), std::string(e.name), std::string(e.help)});
  }
  std::cout << to_text(table);
  return 0;
}

int published_command(const PublishedOptions& options, bool json, bool brief) {
  const Published result = run_published(options);
  std::cout << (json ? to_json(result) : brief ? to_brief_text(result) : to_text(result));
  return result.missed == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app{"Tidegate predicts the speed and memory of offloaded training before it runs."};
  app.set_version_flag("--version", std::string("tidegate ") + revision());
  app.require_subcommand(1);
  app.footer("Examples:\n"
             "  tidegate simulate scenarios/mlp_offload_70b.yaml\n"
             "  tidegate simulate scenarios/mlp_offload_70b.yaml --set policy.optimizer.cache=false --json\n"
             "  tidegate inspect config.json\n"
             "  tidegate validate published\n"
             "Exit codes: 0 an answer, 1 a check failed, 2 wrong input, 3 machine error, 4 internal error");
  int code = 0;

  SimulateFlags simulate_flags;
  CLI::App* sim = app.add_subcommand("simulate", "predict a scenario");
  sim->add_option("scenario", simulate_flags.scenario, "scenario file (YAML)")->required();
  sim->add_option("--set", simulate_flags.sets,
                  "override a key: policy.optimizer.buffer_count=32, machine.paths.nvme.read=\"12 GB/s\"")
      ->allow_extra_args(false);
  sim->add_option("--iterations", simulate_flags.iterations, "iterations to simulate")->check(CLI::PositiveNumber);
  sim->add_option("--trace", simulate_flags.trace, "write a timeline for ui.perfetto.dev");
  sim->add_option("--plan", simulate_flags.plan, "write the plan, a line per task");
  sim->add_flag("--json", simulate_flags.json, "print JSON (docs/report_json.md)");
  sim->callback([&] { code = simulate_command(simulate_flags); });

  InspectFlags inspect_flags;
  CLI::App* inspect = app.add_subcommand("inspect", "show a network: parameters, FLOPs, saved bytes");
  inspect->add_option("config", inspect_flags.config, "Hugging Face config.json")->required();
  inspect->add_option("--seq", inspect_flags.sequence, "tokens per sequence")->check(CLI::PositiveNumber);
  inspect->add_option("--micro-batch", inspect_flags.micro_batch, "sequences per step and GPU")->check(CLI::PositiveNumber);
  inspect->add_flag("--json", inspect_flags.json, "print JSON");
  inspect->callback([&] { code = inspect_command(inspect_flags); });

  CLI::App* policies = app.add_subcommand("policies", "list the policies");
  policies->callback([&] { code = policies_command(); });

  PublishedOptions published_options;
  bool published_json = false, published_brief = false;
  CLI::App* validate = app.add_subcommand("validate", "hold predictions against measurements");
  validate->require_subcommand(1);
  CLI::App* published = validate->add_subcommand("published", "published runs, predicted and measured");
  published->add_option("--case", published_options.only, "only cases whose name contains this");
  published->add_flag("--brief", published_brief, "iterations and speed-ups only");
  published->add_flag("--ablation", published_options.ablation, "switch the principles on one by one");
  published->add_flag("--json", published_json, "print JSON (docs/published_json.md)");
  published->callback([&] { code = published_command(published_options, published_json, published_brief); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int cli_code = app.exit(error);
    return cli_code == 0 ? 0 : 2;
  }
  return code;
}

}  // namespace
}  // namespace tidegate

int main(int argc, char** argv) {
  try {
    return tidegate::run(argc, argv);
  } catch (const tidegate::InputError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const tidegate::MachineError& error) {
    std::cerr << error.what() << "\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "internal error: " << error.what() << "\nPlease report this with the command line.\n";
    return 4;
  }
}
