#include "cli/calib.hpp"

#include <filesystem>
#include <memory>

#include <unistd.h>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "calib/profile/calibration_page.hpp"
#include "calib/profile/diff.hpp"
#include "calib/profile/show.hpp"
#include "calib/run/run.hpp"
#include "cli/blas.hpp"
#include "cli/calib_progress.hpp"
#include "cli/common.hpp"
#include "cli/counts.hpp"
#include "cli/outputs.hpp"
#include "models/base/error.hpp"
#include "models/base/files.hpp"
#include "sim/run/predict.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;

// A flag's size: "64 GiB".
Bytes size_of(const std::string& flag, const std::string& text) {
  if (text.empty()) return Bytes(0);
  double bytes = 0;
  std::string problem;
  if (!parse_quantity(text, Dimension::bytes, bytes, problem) || !(bytes > 0)) {
    throw InputError(fmt::format(
        "{}: {}", flag,
        problem.empty() ? "'" + text + "' is not above zero; write a size such as 16 GiB"
                        : problem));
  }
  return Bytes(bytes);
}

// A file, or a component that ships with the program by its name.
std::string component_of(const std::string& asked) {
  if (fs::is_regular_file(asked)) return asked;
  const fs::path folder = fs::path(TIDEGATE_DATA_DIR) / "hw_profiles" / "components";
  const fs::path shipped = folder / (asked + ".yaml");
  if (fs::is_regular_file(shipped)) return shipped.string();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().stem().string());
  const std::string near = nearest(asked, names);
  throw InputError("--gpu: there is no component '" + asked + "'" +
                   (near.empty() ? std::string() : "; did you mean '" + near + "'?"));
}

calib::RunOptions options_of(const CalibFlags& flags) {
  calib::RunOptions options;
  options.storage = flags.storage;
  options.out = flags.out;
  options.effort = flags.quick  ? calib::Effort::quick
                   : flags.full ? calib::Effort::full
                                : calib::Effort::standard;
  options.only = flags.only;
  options.resume = flags.resume;
  options.identify = flags.identify;
  options.is_gated = !flags.ungated;
  options.node_per_rank = flags.node_per_rank;
  options.shared = flags.shared;
  options.local = flags.local;
  options.write_budget = size_of("--write-budget", flags.write_budget);
  options.file_size = size_of("--file-size", flags.file_size);
  options.sustained = size_of("--sustained", flags.sustained);
  options.threads = flags.threads;
  options.passes = flags.passes;
  options.seed = flags.seed;
  if (!flags.gpu.empty()) options.gpus = {component_of(flags.gpu), flags.gpus};
  options.command = flags.command;
  options.tool = fmt::format("tidegate {} ({})", TIDEGATE_VERSION, revision());
  return options;
}

calib::Outcome run_with_progress(const calib::RunOptions& options, calib::Team& team) {
  if (team.rank() != 0) return calib::run(options, team, {});
  CalibProgress progress;
  return calib::run(options, team, [&](const calib::ProgressNow& now) { progress(now); });
}

int calibrate(const calib::RunOptions& options, const CalibFlags& flags) {
  if (flags.dry_run) {
    print(calib::dry_run_text(options));
    return 0;
  }
  use_blas_well(flags.argv);
  const std::unique_ptr<calib::Team> team = calib::make_team();
  // Told while the team is whole: a launcher stops the others when one has ended with an error.
  try {
    const calib::Outcome outcome = run_with_progress(options, *team);
    if (team->rank() == 0) print(flags.json ? calib::to_json(outcome) : calib::to_text(outcome));
    constexpr int interrupted = 130;
    return outcome.is_complete ? 0 : interrupted;
  } catch (const calib::ToldByFirst& failure) {
    return failure.exit_code;
  } catch (...) {
    return tell_failure();
  }
}

int calib_command(const CalibFlags& flags) {
  calib::RunOptions options;
  try {
    options = options_of(flags);
  } catch (const InputError&) {
    if (is_speaker()) throw;
    return fail_silently();
  }
  return calibrate(options, flags);
}

void show_command(const CalibFlags& flags) {
  const std::string profile = not_a_folder(flags.show);
  if (flags.html.empty()) return print(calib::show_text(profile));
  const std::string page = calib::show_html(profile);
  write_atomically(flags.html, [&page](std::ostream& out) { out << page; });
}

void add_show_and_diff(CLI::App& calib, CalibFlags& flags) {
  CLI::App* show = calib.add_subcommand("show", "a measured profile as a page");
  show->add_option("profile", flags.show, "profile that calib wrote")
      ->type_name("FILE")
      ->required();
  add_output(*show, "--html", flags.html, "write a page with curves instead of printing");
  show->footer(
      "Examples:\n  tidegate calib show my_node.yaml\n"
      "  tidegate calib show my_node.yaml --html my_node.html");
  show->callback([&flags] { show_command(flags); });
  CLI::App* diff = calib.add_subcommand("diff", "what changed between two profiles beyond noise");
  diff->add_option("profiles", flags.diff, "two profiles")
      ->type_name("FILE")
      ->required()
      ->expected(2);
  diff->add_flag("--json", flags.json, "print JSON");
  diff->footer("Example:\n  tidegate calib diff monday.yaml tuesday.yaml");
  diff->callback([&flags] {
    const calib::Diff d = calib::diff(not_a_folder(flags.diff[0]), not_a_folder(flags.diff[1]));
    print(flags.json ? calib::to_json(d) : calib::to_text(d));
  });
}

}  // namespace

void add_calib(CLI::App& app, CalibFlags& flags, int& code) {
  CLI::App* calib = app.add_subcommand("calib", "measure this machine and write its profile");
  calib
      ->add_option("--storage", flags.storage,
                   "folder to measure, DIR or name=DIR; again for each path")
      ->type_name("DIR")
      ->allow_extra_args(false);
  add_output(*calib, "-o,--out", flags.out, "profile to write, my_node.yaml");
  CLI::Option* quick = calib->add_flag("--quick", flags.quick, "about a minute");
  calib->add_flag("--full", flags.full, "the whole grid, five passes")->excludes(quick);
  calib->add_option("--only", flags.only, "only these benchmarks")
      ->delimiter(',')
      ->allow_extra_args(false);
  calib->add_flag("--resume", flags.resume, "go on where an interrupted run stopped");
  calib->add_flag("--dry-run", flags.dry_run, "say what would be measured and written, and stop");
  calib->add_option(
      "--write-budget", flags.write_budget,
      "most to write to one path, such as 16 GiB; to one that nodes share, all of them "
      "together as much again");
  calib->add_option("--file-size", flags.file_size, "of the scratch file on each path");
  calib->add_option("--sustained", flags.sustained,
                    "also one long write of this size to each path: where its cache ends");
  calib
      ->add_option("--gpu", flags.gpu,
                   "take the GPU's values from this component where there is no GPU to measure")
      ->type_name("COMPONENT");
  calib->add_option("--gpus", flags.gpus, "how many of them")->transform(count_in(1, 8));
  calib->add_option("--threads", flags.threads, "most threads of CPU rows")
      ->transform(count_in(1, 4096));
  calib->add_option("--passes", flags.passes, "times that every row is measured")
      ->transform(count_in(1, 100));
  calib->add_option("--seed", flags.seed, "of the order of rows and the contents of files");
  calib->add_flag("--identify", flags.identify, "write the host's name instead of a hash");
  calib->add_flag("--ungated", flags.ungated,
                  "count samples taken beside other work too; the profile says so");
  calib->add_flag("--node-per-rank", flags.node_per_rank,
                  "under mpirun: every rank counts as a node, to try a cluster run on one machine");
  calib
      ->add_option("--shared", flags.shared,
                   "name of a path that is one file system on all nodes; found out otherwise")
      ->allow_extra_args(false);
  calib->add_option("--local", flags.local, "name of a path that each node has for itself")
      ->allow_extra_args(false);
  calib->add_flag("--json", flags.json, "print JSON");
  calib->footer(
      "Writes only to the folders given and to the profile. Scratch files have no names, so "
      "nothing is\n"
      "left behind, however the run ends. Ctrl-C writes what was measured as OUT.incomplete.yaml.\n"
      "Examples:\n"
      "  tidegate calib --storage /mnt/nvme0 -o my_node.yaml --dry-run\n"
      "  tidegate calib --storage /mnt/nvme0 --storage pfs=/lustre/scratch -o my_node.yaml\n"
      "  tidegate calib --quick -o laptop.yaml\n"
      "  mpirun --map-by ppr:1:node tidegate calib --storage /mnt/nvme0 -o cluster.yaml\n"
      "  tidegate calib show my_node.yaml\n"
      "  tidegate calib diff monday.yaml tuesday.yaml\n"
      "Exit codes: 0 complete, 2 wrong input, 3 machine error, 130 interrupted");
  add_show_and_diff(*calib, flags);
  calib->callback([calib, &flags, &code] {
    if (calib->get_subcommands().empty()) code = calib_command(flags);
  });
}

}  // namespace tidegate
