#include "cli/aio.hpp"

#include <memory>

#include <CLI/CLI.hpp>

#include "cli/start.hpp"
#include "sim/report/words.hpp"
#include "sim/run/aio.hpp"

namespace tidegate {
namespace {

struct AioFlags : StartFlags {
  double margin = 1;  ///< percent
  bool json = false;
};

// Where the optimizer has the key; of other policies the person knows it.
std::string next_text(const AioFlags& flags, const yaml::Value& values) {
  const yaml::Value* policy = values.find("policy");
  const yaml::Value* optimizer = policy != nullptr ? policy->find("optimizer") : nullptr;
  const yaml::Value* name = optimizer != nullptr ? optimizer->find("name") : nullptr;
  if (name == nullptr || (name->text != "zero_infinity" && name->text != "mlp_offload")) return "";
  return "\nNext, what it does to an iteration\n  tidegate tune " + words_of(flags) +
         " --over policy.optimizer.aio.queue_depth=1,2,4,8,16,32\n";
}

void aio_command(const AioFlags& flags) {
  std::vector<Override> overrides = overrides_of(flags);
  const Start start = start_of(flags, overrides);
  tell_start(start);
  Scenario scenario = load_scenario(start.source, overrides);
  const Prediction prediction = predict(scenario);
  const AioTable table = aio_table(scenario, prediction, flags.margin / 100);
  if (flags.json) return print(to_json(table));
  print(to_text(table) + next_text(flags, scenario_values(start.source, overrides)));
}

}  // namespace

void add_aio(CLI::App& app) {
  const auto flags = std::make_shared<AioFlags>();
  CLI::App* aio = app.add_subcommand(
      "aio", "what block size, queue depth and threads get out of the storage paths");
  add_start_flags(*aio, *flags);
  aio->add_option("--margin", flags->margin, "percent of a path's rate that is not worth more")
      ->check(CLI::Range(0.0, 50.0))
      ->capture_default_str();
  aio->add_flag("--json", flags->json, "print JSON (docs/aio_json.md)");
  aio->footer(
      "Examples:\n"
      "  tidegate aio zero_infinity_70b\n"
      "  tidegate aio zero_infinity_70b --hardware my_node.yaml --set "
      "policy.optimizer.aio.queue_depth=32\n"
      "  tidegate aio --hf config.json --deepspeed ds_config.json --hardware my_node.yaml");
  aio->callback([flags] { aio_command(*flags); });
}

}  // namespace tidegate
