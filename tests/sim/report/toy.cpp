#include "tests/sim/report/toy.hpp"

#include <string>

using namespace tidegate;
using namespace tidegate::literals;

TaskId RunBuilder::add(const PlanBuilder::NewTask& task, const Work& work, const Demand& demand,
                       double start, double end, const std::vector<TaskId>& after,
                       const std::vector<Effect>& effects) {
  const WorkId id = plan.work(work);
  if (index(id) == demands_.size()) demands_.push_back(demand);
  timeline_.start.push_back(to_ticks(Seconds(start)));
  timeline_.end.push_back(to_ticks(Seconds(end)));
  return plan.add(task, id, after, effects);
}

Run RunBuilder::finish(int iterations, int ranks, std::vector<Resource> resources) {
  return {plan.finish(iterations, ranks), timeline_, demands_, std::move(resources), {}};
}

Demand demand(int resource, double alone, double latency) {
  Demand d{.latency = Seconds(latency), .alone = Seconds(alone), .amount = alone};
  d.use(static_cast<ResourceId>(resource), 1);
  return d;
}

namespace {

struct Rank {
  std::uint16_t number = 0;
  LaneId gpu{}, io{};
  PoolId pool{};
  BufferId weights{};
  std::vector<TaskId> last;  // what the next iteration waits for
};

void add_iteration(RunBuilder& run, Rank& rank, std::uint16_t i) {
  const double t = 9 * i, late = i;
  const std::uint16_t r = rank.number;
  const BufferId activations = run.plan.buffer(rank.pool, run.plan.owner("activations"), 3_GB);
  const BufferId gradients = run.plan.buffer(rank.pool, run.plan.owner("gradients"), 2_GB);
  std::vector<Effect> begin = {allocate(activations)}, end = {free(gradients)};
  if (i == 0) begin.push_back(allocate(rank.weights));
  if (i == 1) end.push_back(free(rank.weights));

  const auto step = [&](Phase phase, const char* name, LaneId lane, const Work& work,
                        const Demand& price, double from, double to, std::vector<Effect> effects) {
    run.plan.enter(i, phase);
    rank.last = {run.add({name, lane, r}, work, price, from, to, rank.last, effects)};
    run.plan.mark(rank.last.front(), r);
  };
  step(Phase::forward, "forward", rank.gpu, Compute{r, {Gemm{1, 1, 1}}}, demand(r, 1.5, 0.5), t,
       t + 2, begin);
  step(Phase::backward, "backward", rank.gpu, Compute{r, {Gemm{1, 1, 2}}}, demand(r, 3), t + 2,
       t + 5, {allocate(gradients), free(activations)});
  step(Phase::update, "write", rank.io,
       FileIo{.direction = Direction::write, .memory = {Tier::gpu, r}, .bytes = 1_GB}, demand(2, 2),
       t + 5 + late, t + 9 + late, end);
}

}  // namespace

Run two_ranks(double capacity_gb) {
  RunBuilder run;
  std::vector<Rank> ranks;
  for (std::uint16_t r = 0; r < 2; ++r) {
    const std::string gpu = "gpu" + std::to_string(r);
    Rank rank{.number = r,
              .gpu = run.plan.lane("compute", r),
              .io = run.plan.lane("storage", r),
              .pool = run.plan.pool(gpu, {Tier::gpu, r}, Bytes(1e9 * capacity_gb))};
    rank.weights = run.plan.buffer(rank.pool, run.plan.owner("weights"), 6_GB);
    ranks.push_back(rank);
  }
  for (std::uint16_t i = 0; i < 2; ++i) {
    for (Rank& rank : ranks) add_iteration(run, rank, i);
  }
  return run.finish(2, 2, {{"gpu0"}, {"gpu1"}, {"drive"}});
}
