#include "calib/run/cluster.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>

#include <fmt/core.h>

#include "calib/checks/checks.hpp"
#include "calib/cluster/shared_path.hpp"
#include "calib/cluster/sharing.hpp"
#include "calib/cluster/together.hpp"
#include "calib/node/estimate.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

bool is_told(const RunOptions& options, const std::string& name) {
  return std::ranges::count(options.shared, name) + std::ranges::count(options.local, name) > 0;
}

CheckResult check_of(const std::string& path, Sharing sharing, std::int32_t processes) {
  const std::string name = path + ".shared";
  switch (sharing) {
    case Sharing::all:
      return {name, "ok", fmt::format("all {} processes see one file system", processes)};
    case Sharing::none:
      return {name, "ok", fmt::format("each of {} processes sees its own", processes)};
    case Sharing::some:
      return {name, "suspected",
              "some processes see what the first one writes, others do not; each was measured for "
              "itself"};
  }
  return {};
}

SharedPlan plan_of(const Setup& setup, const StorageTarget& path, std::int32_t passes) {
  SharedPlan plan;
  plan.path = path;
  plan.passes = passes;
  plan.samples = setup.effort == Effort::quick ? 3 : 5;
  plan.sample = Seconds(setup.effort == Effort::quick      ? 0.2
                        : setup.effort == Effort::standard ? 0.5
                                                           : 1.0);
  plan.file = setup.file_size;
  plan.budget = setup.write_budget;
  plan.seed = setup.seed;
  return plan;
}

// Whether clients read their own files faster than those of others, with all at work.
std::optional<CheckResult> client_cache(const Measurements& m, const std::string& path) {
  const auto own = rows_of(m, path + ".shared.read"),
             other = rows_of(m, path + ".shared.read_other");
  if (own.empty() || other.empty()) return std::nullopt;
  const auto of_all = with(own, "clients", coordinate(other[0]->row, "clients"));
  if (of_all.empty()) return std::nullopt;
  std::vector<double> pairs[] = {block_values(*of_all[0]), block_values(*other[0])};
  const std::size_t passes = std::min(pairs[0].size(), pairs[1].size());
  for (std::vector<double>& values : pairs) values.resize(passes);
  const Check c = judge_client_cache(pairs[0], pairs[1]);
  return CheckResult{path + "." + c.name, name_of(c.verdict), c.evidence};
}

void merge(std::vector<Measurements>& all, std::vector<Measurements> more) {
  all.resize(std::max(all.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) {
    std::ranges::move(more[i].rows, std::back_inserter(all[i].rows));
  }
}

}  // namespace

void check_team(const Team& team, const RunOptions& options) {
  if (team.size() > 1 && options.resume) {
    throw InputError(
        "--resume goes on with the samples of one machine, and those of a cluster are together in "
        "one file; measure anew");
  }
  if (team.size() == team.hosts() || options.node_per_rank) return;
  throw InputError(fmt::format(
      "{} processes on {} hosts; start one per node (Open MPI: mpirun --map-by ppr:1:node, Slurm: "
      "srun --mpi=pmix --ntasks-per-node=1), or say --node-per-rank to try a cluster run on one "
      "machine",
      team.size(), team.hosts()));
}

std::vector<CheckResult> find_shared(Team& team, Setup& setup, const RunOptions& options) {
  std::vector<CheckResult> checks;
  if (team.size() == 1) return checks;
  std::vector<std::string> folders;
  for (const StorageTarget& target : setup.storage) folders.push_back(target.folder);
  const std::vector<Sharing> seen = sharing_of(team, folders);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    StorageTarget& target = setup.storage[i];
    if (!is_told(options, target.name)) target.is_shared = seen[i] == Sharing::all;
    checks.push_back(check_of(target.name, seen[i], team.size()));
  }
  return checks;
}

Measurements measure_nodes(Team& team, const std::function<Measurements()>& measure_own) {
  Measurements own;
  std::exception_ptr failure;
  const std::int32_t turns = team.size() == team.hosts() ? 1 : team.size();
  for (std::int32_t turn = 0; turn < turns; ++turn) {
    try {
      if (turns == 1 || team.rank() == turn) own = measure_own();
    } catch (...) {  // thrown when the others know
      failure = std::current_exception();
    }
    team.barrier();
  }
  agree(team, failure);
  return own;
}

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

Together measure_together(Team& team, const Setup& setup, const RunOptions& options,
                          std::int32_t passes,
                          const std::function<void(const std::string&)>& tell) {
  Together result;
  result.all.is_complete = true;
  if (team.size() > 1) tell("the network, all nodes together");
  add(result.all, measure_network(team, passes));
  const bool asks_storage = options.only.empty() || std::ranges::count(options.only, "storage") > 0;
  for (const StorageTarget& path : setup.storage) {
    if (!path.is_shared || !asks_storage || !result.all.is_complete) continue;
    const std::string name = path.name + ".shared";
    if (team.size() == 1) {
      result.not_measured.emplace_back(
          name,
          "one process alone; start one per node (mpirun, srun) to see what the file system "
          "gives to all of them");
      continue;
    }
    SharedResult shared = measure_shared(team, plan_of(setup, path, passes), tell);
    if (auto check = client_cache(shared.all, path.name)) result.checks.push_back(*check);
    add(result.all, std::move(shared.all));
    merge(result.clients, std::move(shared.clients));
    if (!shared.why_not.empty()) result.not_measured.emplace_back(name, shared.why_not);
  }
  return result;
}

}  // namespace tidegate::calib
