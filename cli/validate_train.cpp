#include "cli/validate_train.hpp"

#include <array>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/blas.hpp"
#include "cli/counts.hpp"
#include "models/base/files.hpp"
#include "sim/report/trace.hpp"
#include "validate/cuda/cuda_training.hpp"
#include "validate/execute/trained_scenario.hpp"

namespace tidegate {

void add_train_flags(CLI::App& run, TrainFlags& flags) {
  CLI::Option* train = run.add_flag(
      "--train", flags.train,
      "train the network for real under the plan, and without it: losses and parameters must be "
      "the same bit for bit");
  // Real arithmetic takes the time that it takes, all of it, once.
  for (const char* other : {"--paced", "--tries", "--scale", "--gate", "--draws", "--html"})
    train->excludes(run.get_option(other));
  const auto of_training = [&](CLI::Option* option) { option->needs(train); };
  of_training(run.add_option("--steps", flags.steps, "of the training")
                  ->transform(count_in(1, 60'000))
                  ->capture_default_str());
  of_training(
      run.add_flag("--threads", flags.threads,
                   "ranks are threads of one process, as with --gpu; else each is a process"));
  CLI::Option* checkpoint =
      run.add_option("--checkpoint", flags.checkpoint,
                     "write parameters and optimizer state to this folder, after the last step")
          ->type_name("DIR");
  of_training(checkpoint);
  of_training(run.add_option("--every", flags.every, "and after each that many steps")
                  ->transform(count_in(1, 60'000))
                  ->needs(checkpoint));
  of_training(run.add_option("--resume", flags.resume,
                             "go on from this state, or the newest of this folder")
                  ->type_name("FILE"));
}

int train_command(const ScenarioFlags& from, const std::vector<std::string>& storage,
                  const TrainFlags& flags, bool on_gpu, std::uint64_t seed,
                  const std::string& trace, bool is_json) {
  use_blas_well();
  Scenario scenario = load_scenario(find_scenario(from.scenario), overrides_of(from));
  const std::unique_ptr<train::Backend> gpu = on_gpu ? cuda_training() : nullptr;
  const TrainedScenario trained = train_scenario(scenario, {.storage = storage,
                                                            .steps = flags.steps,
                                                            .seed = seed,
                                                            .in_one_process = flags.threads,
                                                            .checkpoint = flags.checkpoint,
                                                            .every = flags.every,
                                                            .resume = flags.resume,
                                                            .deaths = {},
                                                            .backend = gpu.get()});
  if (!trace.empty()) {
    const std::array runs = {TracedRun{"predicted", &trained.plan.timeline},
                             TracedRun{"trained", &trained.timeline}};
    write_atomically(trace, [&](std::ostream& out) {
      write_trace(out, trained.plan.plan, runs, trained.plan.demands, trained.plan.resources,
                  scenario.allocator);
    });
  }
  print(is_json ? to_json(trained) : to_text(trained));
  return trained.is_same() ? 0 : 1;
}

}  // namespace tidegate
