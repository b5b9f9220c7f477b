#include "calib/run/run.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/core.h>

#include "calib/checks/checks.hpp"
#include "calib/cuda/facts.hpp"
#include "calib/node/estimate.hpp"
#include "calib/rig/interrupt.hpp"
#include "calib/run/cluster.hpp"
#include "calib/storage/storage_bench.hpp"
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

// Beside samples of another machine those of this one would make a profile of neither.
void check_host(const Measurements& known, const std::string& file) {
  const std::string here = rig::host_facts().id;
  if (known.host.empty() || known.host == here) return;
  throw InputError({file, 1, 1}, "host",
                   fmt::format("the samples are of machine {}, this is {}; measure this one "
                               "without --resume, or under another --out",
                               known.host, here));
}

Measurements samples_of_before(const RunOptions& options) {
  if (!options.resume) return {};
  for (const bool is_complete : {false, true}) {
    const std::string raw = names_of(options.out, is_complete).raw;
    if (!fs::is_regular_file(raw)) continue;
    std::ifstream file(raw);
    std::ostringstream text;
    text << file.rdbuf();
    Measurements known = read_lines(text.str(), raw);
    check_host(known, raw);
    return known;
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

// All that is made before anything is measured.
struct Prepared {
  Setup setup, alone;  // of the run, and of what this process measures alone
  Measurements known;
  Selected selected;
  Protocol protocol;
  std::vector<CheckResult> checks;
};

// What is wrong with the command of one process ends all.
Prepared prepare(const RunOptions& options, Team& team) {
  Prepared p;
  const auto on_all = [&team](const auto& make) {
    std::exception_ptr failure;
    try {
      make();
    } catch (...) {  // thrown when the others know
      failure = std::current_exception();
    }
    agree(team, failure);
  };
  on_all([&] {
    check_team(team, options);
    p.setup = make_setup(options);
  });
  p.checks = find_shared(team, p.setup, options);
  on_all([&] {
    p.alone = p.setup;
    if (team.rank() != 0) {
      std::erase_if(p.alone.storage, [](const StorageTarget& t) { return t.is_shared; });
    }
    p.known = samples_of_before(options);
    p.selected = select(options, p.alone);
    p.protocol = protocol_of(options, p.alone);
  });
  return p;
}

// Progress of what is not measured by blocks.
class Stages {
 public:
  explicit Stages(const std::function<void(const ProgressNow&)>& progress) : progress_(progress) {}
  void operator()(const std::string& doing) const {
    using namespace std::chrono;
    const double seconds = duration<double>(steady_clock::now() - began_).count();
    if (progress_) progress_({.doing = doing, .seconds = seconds});
  }

 private:
  const std::function<void(const ProgressNow&)>& progress_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// Which node is slow at what, alone and beside the others.
void compare_nodes(Outcome& outcome, std::vector<NodeMeasurements>& nodes,
                   std::vector<Measurements> clients) {
  for (std::size_t i = 0; i < std::min(nodes.size(), clients.size()); ++i) {
    add(nodes[i].measurements, std::move(clients[i]));
  }
  outcome.outliers = outliers(nodes);
  if (const std::string why = why_not_judged(nodes); !why.empty()) {
    outcome.account.checks.push_back({"nodes", name_of(Verdict::not_told), why});
  }
  outcome.account.nodes = static_cast<std::int32_t>(nodes.size());
  outcome.account.spreads = spreads(nodes);
  outcome.account.slow = slow_nodes(outcome.outliers);
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
  const rig::InterruptScope interrupts;
  Prepared prepared = prepare(options, team);
  std::vector<CheckResult>& checks = prepared.checks;
  Protocol& protocol = prepared.protocol;
  protocol.when_prepared = experiments(prepared.alone, checks);
  const Stages tell(progress);
  const rig::Readings before = rig::read_system();
  const Measurements own = measure_nodes(team, [&] {
    Measurements m = measure(prepared.selected.benches, prepared.selected.canaries, protocol,
                             prepared.known, progress);
    m.host = rig::host_facts().id;
    if (team.size() > 1) tell("waiting for the other processes");
    return m;
  });
  prepared.selected.benches.clear();
  Together together = measure_together(team, prepared.setup, options, protocol.passes, tell);
  Outcome outcome;
  std::vector<NodeMeasurements> nodes =
      team.size() > 1 ? gather(team, own, prepared.setup.host.id) : std::vector<NodeMeasurements>{};
  outcome.measurements = team.size() > 1 ? pooled(nodes) : own;
  add(outcome.measurements, std::move(together.all));
  outcome.measurements.host = own.host;
  outcome.is_complete = outcome.measurements.is_complete;
  if (team.rank() != 0) return outcome;
  outcome.account = account_of(options, prepared.setup, protocol, prepared.selected);
  std::ranges::move(together.not_measured, std::back_inserter(outcome.account.not_measured));
  std::ranges::move(checks, std::back_inserter(outcome.account.checks));
  std::ranges::move(together.checks, std::back_inserter(outcome.account.checks));
  for (const Check& c : judge(outcome.measurements, before)) {
    outcome.account.checks.push_back({c.name, name_of(c.verdict), c.evidence});
  }
  if (team.size() > 1) compare_nodes(outcome, nodes, std::move(together.clients));
  outcome.node = node_profile(outcome.measurements, prepared.setup, options.gpus, gpus_here());
  write_results(outcome, options);
  return outcome;
}

}  // namespace tidegate::calib
