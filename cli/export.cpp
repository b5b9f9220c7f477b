#include "cli/export.hpp"

#include <ostream>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "cli/outputs.hpp"
#include "cli/say.hpp"
#include "models/base/error.hpp"
#include "models/base/files.hpp"
#include "sim/deepspeed/write.hpp"
#include "sim/report/table.hpp"

namespace tidegate {
namespace {

std::string remarks_text(const std::vector<Remark>& remarks) {
  constexpr std::size_t width = 80, indent = 4;
  std::string text = remarks.empty() ? "" : "To be done by hand, or not to be had\n";
  for (const Remark& r : remarks) text += "  - " + wrap(to_text(r), width - indent, indent) + "\n";
  return text;
}

std::string flags_text(const char* engine, std::vector<std::string> common,
                       const std::vector<std::string>& own) {
  common.insert(common.end(), own.begin(), own.end());
  std::string text = std::string(engine) + "\n ";
  for (const std::string& flag : common) text += " " + flag;
  return text + "\n";
}

void export_command(const ExportFlags& flags) {
  if (flags.deepspeed.empty() && !flags.megatron)
    throw InputError(
        "export: nothing to write; add --deepspeed FILE, or - for FILE, or --megatron");
  if (flags.deepspeed == "-" && flags.megatron)
    throw InputError("--megatron: prints to standard output, as --deepspeed - does; name a file");
  std::vector<Override> overrides = overrides_of(flags.start);
  const ScenarioSource source = start_of(flags.start, overrides).source;
  const Scenario scenario = load_scenario(source, overrides);
  const yaml::Value values = scenario_values(source, overrides);
  std::vector<Remark> remarks;
  if (!flags.deepspeed.empty()) {
    DeepSpeedFile file = write_deepspeed(values, scenario);
    remarks = std::move(file.remarks);
    if (flags.deepspeed == "-") {
      print(file.json);
      say(remarks_text(remarks));
      return;
    }
    write_atomically(flags.deepspeed, [&](std::ostream& out) { out << file.json; });
  }
  std::string text;
  if (flags.megatron) {
    const MegatronFlags megatron = megatron_flags(
        values, scenario, flags.deepspeed.empty() ? "ds_config.json" : flags.deepspeed);
    text = flags_text("Megatron-LM", megatron.common, megatron.megatron_lm) +
           flags_text("Megatron-DeepSpeed", megatron.common, megatron.megatron_deepspeed);
    for (const Remark& r : megatron.remarks) add_remark(remarks, r);
  }
  print(text + remarks_text(remarks));
}

}  // namespace

void add_export(CLI::App& app, ExportFlags& flags) {
  CLI::App* command =
      app.add_subcommand("export", "write a scenario as a ds_config.json or flags of Megatron");
  add_start_flags(*command, flags.start);
  command->remove_option(command->get_option("--deepspeed"));
  command->remove_option(command->get_option("--gpu-times"));
  add_output(*command, "--deepspeed", flags.deepspeed,
             "ds_config.json to write, - for standard output (docs/deepspeed.md)",
             Dash::is_standard_output);
  command->add_flag("--megatron", flags.megatron,
                    "print layout, batch and recomputation as flags of Megatron");
  command->footer(
      "Examples:\n"
      "  tidegate export zero_infinity_70b --deepspeed ds_config.json --megatron\n"
      "  tidegate export --hf config.json --hardware a100_8gpu --set policy.zero.stage=2 "
      "--deepspeed -\n"
      "  tidegate export qwen25_7b_twin_flow_a100 --set policy.optimizer.ratio=0.4 --deepspeed -");
  command->callback([&flags] { export_command(flags); });
}

}  // namespace tidegate
