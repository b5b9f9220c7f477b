#include "tests/sim/engine/random_plan.hpp"

#include <algorithm>

namespace tidegate {
namespace {

Resource random_resource(Random& random) {
  Resource r;
  if (random.chance(0.4)) r.mixed_cost = {1 + random.uniform(), 1 + 2 * random.uniform()};
  if (random.chance(0.3)) {
    r.burst = Seconds(0.5 + 2 * random.uniform());
    r.tired_cost = 1 + 3 * random.uniform();
    r.recovery = random.uniform();
  }
  return r;
}

Demand random_demand(Random& random, std::size_t resources, bool is_rough) {
  // Rough numbers make many instants equal.
  const auto number = [&](double most) {
    return is_rough ? 0.5 * (1 + random.below(static_cast<std::uint32_t>(2 * most)))
                    : most * (0.05 + random.uniform());
  };
  if (is_rough && random.chance(0.15)) return toy::wait(0);
  if (random.chance(0.15)) return toy::wait(number(3));
  Demand demand = toy::flow(number(4), {}, random.chance(0.5) ? 0 : number(4),
                            random.chance(0.3) ? number(3) : 1, random.chance(0.3) ? number(1) : 0);
  const std::uint32_t first = random.below(static_cast<std::uint32_t>(resources));
  const auto count =
      1 + random.below(static_cast<std::uint32_t>(std::min<std::size_t>(resources, 4)));
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto r = static_cast<std::uint16_t>((first + i) % resources);
    demand.use(ResourceId{r}, random.chance(0.4) ? 1 : 0.05 + 0.95 * random.uniform(),
               static_cast<std::uint8_t>(random.below(2)));
  }
  return demand;
}

// Effects that cannot deadlock: tokens and locks are given back by the task that takes them.
class RandomEffects {
 public:
  RandomEffects(toy::Toy& toy, Random& random) : toy_(toy), random_(random) {
    for (int i = 0; i < 2; ++i) {
      pools_.push_back(toy.builder.pool("pool", {}, Bytes(100)));
      tokens_.push_back(toy.builder.tokens("tokens " + std::to_string(i), 2 + i));
      locks_.push_back(toy.builder.lock("lock " + std::to_string(i)));
    }
    owner_ = toy.builder.owner("test");
  }

  std::vector<Effect> next(bool is_last) {
    std::vector<Effect> effects;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (!random_.chance(0.3)) continue;
      const auto count = static_cast<std::int32_t>(1 + random_.below(2));
      effects.push_back(acquire(tokens_[i], count));
      effects.push_back(release(tokens_[i], count));
    }
    if (random_.chance(0.3)) effects.push_back(hold(locks_[random_.below(2)]));
    if (random_.chance(0.5)) {
      const double bytes = 1 + random_.below(60);
      live_.push_back(toy_.builder.buffer(pools_[random_.below(2)], owner_, Bytes(bytes)));
      effects.push_back(allocate(live_.back()));
    }
    while (!live_.empty() && (is_last || random_.chance(0.3))) {
      effects.push_back(tidegate::free(live_.front()));
      live_.erase(live_.begin());
    }
    return effects;
  }

 private:
  toy::Toy& toy_;
  Random& random_;
  std::vector<PoolId> pools_;
  std::vector<TokenId> tokens_;
  std::vector<LockId> locks_;
  std::vector<BufferId> live_;
  OwnerId owner_{};
};

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

toy::Toy random_plan(std::uint64_t seed, Features features) {
  Random random(seed);
  toy::Toy toy;
  const bool has_effects = features == Features::all;
  const bool is_rough = has_effects && random.chance(0.5);
  const std::uint32_t resources = 1 + random.below(6), lanes = 1 + random.below(8);
  for (std::uint32_t r = 0; r < resources; ++r) toy.resource(random_resource(random));
  std::vector<LaneId> lane;
  for (std::uint32_t l = 0; l < lanes; ++l) {
    lane.push_back(toy.lane(static_cast<std::uint16_t>(1 + random.below(4))));
  }
  RandomEffects effects(toy, random);
  std::vector<TaskId> tasks;
  const std::uint32_t count = 1 + random.below(60);
  for (std::uint32_t t = 0; t < count; ++t) {
    std::vector<TaskId> after;
    while (!tasks.empty() && random.chance(0.4)) {
      const auto back =
          random.below(static_cast<std::uint32_t>(std::min<std::size_t>(tasks.size(), 12)));
      after.push_back(tasks[tasks.size() - 1 - back]);
    }
    // A buffer is freed after every task before, so that no free comes too early.
    std::vector<Effect> does = has_effects ? effects.next(t + 1 == count) : std::vector<Effect>{};
    const bool frees =
        std::ranges::any_of(does, [](const Effect& e) { return e.kind == Effect::Kind::free; });
    if (frees) after.insert(after.end(), tasks.begin(), tasks.end());
    const Demand demand = random_demand(random, resources, is_rough);
    const auto rank = static_cast<std::uint16_t>(random.below(3));
    tasks.push_back(toy.add(lane[random.below(lanes)], demand, after, does, rank));
  }
  return toy;
}

}  // namespace tidegate
