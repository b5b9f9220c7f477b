#include "calib/run/run.hpp"

#include "calib/checks/checks.hpp"
#include "calib/cluster/together.hpp"
#include "calib/cuda/facts.hpp"
#include "calib/node/estimate.hpp"
#include "calib/storage/storage_bench.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"
#include "models/base/files.hpp"

namespace tidegate::calib {
namespace {

namespace fs = std::filesystem;

struct Names {
  std::string profile, raw;
};
Names names_of(const std::string& out, bool is_complete) {
  const std::string stem = out.substr(0, out.size() - std::string(".yaml").size());
  const std::string kind = is_complete ? "" : ".incomplete";
  return {stem + kind + ".yaml", stem + kind + ".samples.jsonl"};
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

// FNV-1a of 64 bits (Fowler, Noll, Vo): tells whether the samples are those of the profile.
std::string fingerprint(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

Measurements samples_of_before(const RunOptions& options) {
  if (!options.resume) return {};
  for (const bool is_complete : {false, true}) {
    const std::string raw = names_of(options.out, is_complete).raw;
    if (!fs::is_regular_file(raw)) continue;
    std::ifstream file(raw);
    std::ostringstream text;
    text << file.rdbuf();
    return read_lines(text.str(), raw);
  }
  throw InputError("--resume: there are no samples of an earlier run beside " + options.out + " (" +
                   names_of(options.out, false).raw + ")");
}

void add_unmeasured_devices(Account& account, const Setup& setup, const RunOptions& options) {
  if (setup.storage.empty())
    account.not_measured.emplace_back("storage", "no --storage DIR was given");
  if (options.gpus) {
    account.not_measured.emplace_back("gpus", "values of " + options.gpus->component);
  }
}

void write(const std::string& path, const std::string& text) {
  write_atomically(path, [&text](std::ostream& out) { out << text; });
}

}  // namespace

namespace {

Account account_of(const RunOptions& options, const Setup& setup, const Protocol& protocol,
                   const Selected& selected) {
  Account account;
  account.tool = options.tool;
  account.created = utc_now();
  account.command = options.command;
  account.host = setup.host;
  account.seed = options.seed;
  account.gate = protocol.gate;
  account.not_measured = selected.not_measured;
  add_unmeasured_devices(account, setup, options);
  if (!options.is_gated) {
    account.checks.push_back(
        {"gate", "suspected", "--ungated: samples beside other work were taken too"});
  }
  return account;
}

void write_results(Outcome& outcome, const RunOptions& options) {
  const Names names = names_of(options.out, outcome.is_complete);
  const std::string raw = to_lines(outcome.measurements);
  outcome.account.raw_file = fs::path(names.raw).filename().string();
  outcome.account.raw_hash = fingerprint(raw);
  write(names.raw, raw);
  write(names.profile, to_yaml(outcome.node, outcome.measurements, outcome.account));
  outcome.profile = names.profile;
  outcome.raw = names.raw;
  if (!outcome.is_complete || !options.resume) return;
  // What an earlier run left half done is whole now.
  const Names half = names_of(options.out, false);
  fs::remove(half.profile);
  fs::remove(half.raw);
}

void check_team(const Team& team, const RunOptions& options) {
  if (team.size() == team.hosts() || options.node_per_rank) return;
  throw InputError(fmt::format(
      "{} processes on {} hosts; start one per node (Open MPI: mpirun --map-by ppr:1:node, Slurm: "
      "srun "
      "--ntasks-per-node=1), or say --node-per-rank to try a cluster run on one machine",
      team.size(), team.hosts()));
}

// Ranks of one host measure in turn, hosts at the same time.
Measurements measure_nodes(Team& team, const std::function<Measurements()>& measure_own) {
  Measurements own;
  const std::int32_t turns = team.size() == team.hosts() ? 1 : team.size();
  for (std::int32_t turn = 0; turn < turns; ++turn) {
    if (turns == 1 || team.rank() == turn) own = measure_own();
    team.barrier();
  }
  return own;
}

// At rank 0 the measurements of all nodes; elsewhere nothing.
std::vector<NodeMeasurements> gather(Team& team, const Measurements& own, const std::string& id) {
  const std::vector<std::string> lines = team.gather(to_lines(own)), ids = team.gather(id);
  std::vector<NodeMeasurements> nodes;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool is_taken = std::ranges::any_of(nodes, [&](const auto& n) { return n.id == ids[i]; });
    nodes.push_back({is_taken ? fmt::format("{}_{}", ids[i], i) : ids[i],
                     read_lines(lines[i], "node " + ids[i])});
  }
  return nodes;
}

void add(Measurements& all, Measurements more) {
  std::ranges::move(more.rows, std::back_inserter(all.rows));
  all.is_complete = all.is_complete && more.is_complete;
}

}  // namespace

namespace {

// Rows of one quantity by threads: what one reached, and what most did together.
void judge_cores_of(const Measurements& m, std::vector<Check>& checks) {
  double one = 0, many = 0, threads = 1;
  for (const RowResult* row : rows_of(m, "fma")) {
    const double n = coordinate(row->row, "threads");
    if (n == 1) one = estimate(*row).value;
    if (n > threads) threads = n, many = estimate(*row).value;
  }
  if (one > 0 && many > 0)
    checks.push_back(judge_cores(one, many, static_cast<std::int32_t>(threads)));
}

std::vector<Check> judge(const Measurements& m, const rig::Readings& before) {
  std::vector<Check> checks = {judge_contents(m), judge_ceilings(m),
                               judge_processors(before, rig::read_system())};
  judge_cores_of(m, checks);
  return checks;
}

GpuNames gpus_here() {
  const std::vector<cuda::GpuFacts> all = cuda::gpu_facts();
  if (all.empty()) return {};
  return {all[0].name, all[0].memory, static_cast<std::int32_t>(all.size())};
}

// Experiments on every path whose files were just made.
std::function<void(Bench&)> experiments(const Setup& setup, std::vector<CheckResult>& results) {
  return [&setup, &results](Bench& bench) {
    auto* storage = dynamic_cast<StorageBench*>(&bench);
    if (storage == nullptr) return;
    for (std::size_t i = 0; i < storage->targets().size(); ++i) {
      Target& target = storage->targets()[i];
      CheckPlan plan = check_plan(target);
      if (setup.effort == Effort::quick) plan.pairs = 3, plan.burst = Seconds(3);
      for (const Check& c : run_checks(target, plan)) {
        results.push_back({c.name, name_of(c.verdict), c.evidence});
      }
    }
  };
}

}  // namespace

Outcome run(const RunOptions& options, Team& team,
            const std::function<void(const ProgressNow&)>& progress) {
  check_team(team, options);
  Setup setup = make_setup(options);
  if (team.rank() != 0)
    std::erase_if(setup.storage, [](const auto& t) { return t.facts.is_network; });
  const Measurements known = samples_of_before(options);
  Selected selected = select(options, setup);
  const rig::InterruptScope interrupts;
  std::vector<CheckResult> checks;
  Protocol protocol = protocol_of(options, setup);
  protocol.when_prepared = experiments(setup, checks);
  const rig::Readings before = rig::read_system();
  const Measurements own = measure_nodes(team, [&] {
    return measure(selected.benches, selected.canaries, protocol, known, progress);
  });
  const Measurements network = measure_network(team, protocol.passes);
  Outcome outcome;
  const std::vector<NodeMeasurements> nodes =
      team.size() > 1 ? gather(team, own, setup.host.id) : std::vector<NodeMeasurements>{};
  outcome.measurements = team.size() > 1 ? pooled(nodes) : own;
  add(outcome.measurements, network);
  outcome.is_complete = outcome.measurements.is_complete;
  if (team.rank() != 0) return outcome;
  outcome.account = account_of(options, setup, protocol, selected);
  std::ranges::move(checks, std::back_inserter(outcome.account.checks));
  for (const Check& c : judge(outcome.measurements, before)) {
    outcome.account.checks.push_back({c.name, name_of(c.verdict), c.evidence});
  }
  if (team.size() > 1) {
    outcome.outliers = outliers(nodes);
    outcome.account.nodes = team.size();
    outcome.account.spreads = spreads(nodes);
    outcome.account.slow = slow_nodes(outcome.outliers);
  }
  outcome.node = node_profile(outcome.measurements, setup, options.gpus, gpus_here());
  write_results(outcome, options);
  return outcome;
}

}  // namespace tidegate::calib
