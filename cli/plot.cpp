#include "cli/plot.hpp"

#include <ostream>

#include <CLI/CLI.hpp>

#include "cli/counts.hpp"
#include "cli/outputs.hpp"
#include "models/base/files.hpp"
#include "sim/run/rok.hpp"

namespace tidegate {
namespace {

void plot_rok(const PlotFlags& flags) {
  std::vector<Override> overrides = overrides_of(flags.start);
  const Start start = start_of(flags.start, overrides);
  tell_start(start);
  const RokPlot plot = rok_plot(start.source, overrides, {flags.policies, flags.micro_batches});
  if (!flags.file.empty()) {
    write_atomically(flags.file, [&](std::ostream& out) { out << to_svg(to_chart(plot)); });
  }
  print(flags.json ? to_json(plot) : to_text(plot));
}

}  // namespace

void add_plot(CLI::App& app, PlotFlags& flags) {
  CLI::App* plot = app.add_subcommand("plot", "draw predictions");
  plot->footer("Example:\n  tidegate plot rok llama31_8b_h200 -o rok.svg");
  CLI::App* rok = plot->add_subcommand(
      "rok", "recompute, offload or keep activations: memory against throughput");
  add_start_flags(*rok, flags.start);
  rok->remove_option(rok->get_option("--micro-batch"));
  add_output(*rok, "-o,--output", flags.file, "write the plot to this SVG file");
  rok->add_option("--micro-batch", flags.micro_batches,
                  "micro-batch sizes; without it 1, 2, 4, ... until one does not fit")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(count_in(1, 1'000'000));
  rok->add_option("--policies", flags.policies,
                  "keep, full, selective (recomputation) or other names of activation policies")
      ->type_name("POLICY")
      ->delimiter(',')
      ->allow_extra_args(false);
  rok->add_flag("--json", flags.json, "print JSON (docs/rok_json.md)");
  rok->footer(
      "Examples:\n"
      "  tidegate plot rok llama31_8b_h200 -o rok.svg\n"
      "  tidegate plot rok --hf config.json --hardware a100_8gpu --seq 8192\n"
      "  tidegate plot rok qwen25_7b_twin_flow_a100 --micro-batch 1,2,4,8 --policies keep,full "
      "--json");
  rok->callback([&flags] { plot_rok(flags); });
  plot->callback([plot] {
    if (plot->get_subcommands().empty()) print(plot->help());
  });
}

}  // namespace tidegate
