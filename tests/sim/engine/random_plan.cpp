#include "tests/sim/engine/random_plan.hpp"

#include <algorithm>
#include <optional>
#include <utility>

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

// Choices of which a task is asked in a sound way: what hangs on one comes after the task that
// decides it, or is the watched task itself.
class RandomChoices {
 public:
  struct Turn {
    When when;
    std::optional<ChoiceId> fate;    ///< unfinished, watches the task
    std::optional<ChoiceId> cancel;  ///< unstarted, watches the task
    std::vector<Effect> decisions;
    std::vector<TaskId> after;
  };

  RandomChoices(PlanBuilder& builder, Random& random) : builder_(builder), random_(random) {}

  Turn next(bool is_last) {
    Turn turn;
    if (is_last || (!open_.empty() && random_.chance(0.3))) {
      for (const ChoiceId c : open_) turn.decisions.push_back(decide(c));
      deciding_ = std::exchange(open_, {});
    }
    if (is_last) return turn;
    if (random_.chance(0.2)) {
      watch_itself(turn);
    } else if (!decided_.empty() && random_.chance(0.4)) {
      turn.when = settled(turn);
    }
    return turn;
  }
  /// The condition of an effect that follows the task that decides.
  When settled(Turn& turn) {
    const auto& [choice, decider] = decided_[random_.below(size_of(decided_))];
    turn.after.push_back(decider);
    return random_.chance(0.5) ? When::yes(choice) : When::no(choice);
  }
  bool has_settled() const { return !decided_.empty(); }
  /// Decided by a task before this one or by this one.
  bool is_decided(When when) const {
    const auto is_it = [when](ChoiceId c) { return c == when.choice(); };
    return when.is_always() || std::ranges::any_of(decided_, is_it, &Decided::choice) ||
           std::ranges::any_of(deciding_, is_it);
  }
  void added(const Turn& turn, TaskId task) {
    for (const auto& own : {turn.fate, turn.cancel}) {
      if (!own) continue;
      builder_.watch(*own, task);
      open_.push_back(*own);
    }
    for (const ChoiceId c : deciding_) decided_.push_back({c, task});
    deciding_.clear();
  }

 private:
  struct Decided {
    ChoiceId choice{};
    TaskId decider{};
  };
  PlanBuilder& builder_;
  Random& random_;
  std::vector<ChoiceId> open_, deciding_;
  std::vector<Decided> decided_;

  template <class List>
  static std::uint32_t size_of(const List& list) {
    return static_cast<std::uint32_t>(list.size());
  }
  void watch_itself(Turn& turn) {
    if (random_.chance(0.7)) turn.fate = builder_.choice(Choice::Rule::unfinished);
    if (random_.chance(0.3)) return;
    turn.cancel = builder_.choice(Choice::Rule::unstarted);
    turn.when = turn.fate || random_.chance(0.8) ? When::no(*turn.cancel) : When::yes(*turn.cancel);
  }
};

// Effects that cannot deadlock: tokens and locks are given back by the task that takes them.
class RandomEffects {
 public:
  RandomEffects(toy::Toy& toy, Random& random, RandomChoices& choices)
      : toy_(toy), random_(random), choices_(choices) {
    for (int i = 0; i < 2; ++i) {
      pools_.push_back(toy.builder.pool("pool", {}, Bytes(100)));
      tokens_.push_back(toy.builder.tokens("tokens " + std::to_string(i), 2 + i));
      locks_.push_back(toy.builder.lock("lock " + std::to_string(i)));
    }
    owner_ = toy.builder.owner("test");
  }

  std::vector<Effect> next(RandomChoices::Turn& turn, bool is_last) {
    std::vector<Effect> effects;
    add_grants(effects, turn);
    if (random_.chance(0.5)) {
      const double bytes = 1 + random_.below(60);
      live_.push_back({toy_.builder.buffer(pools_[random_.below(2)], owner_, Bytes(bytes)), {}});
      effects.push_back(allocate(live_.back().buffer));
      live_.back().when = turn.when;
    }
    if (turn.fate) {
      forward(effects, *turn.fate);
    } else if (turn.when.is_always()) {
      free_some(effects, is_last);
    }
    return effects;
  }

 private:
  /// To be freed when the condition holds.
  struct Live {
    BufferId buffer{};
    When when;
  };
  toy::Toy& toy_;
  Random& random_;
  RandomChoices& choices_;
  std::vector<PoolId> pools_;
  std::vector<TokenId> tokens_;
  std::vector<LockId> locks_;
  std::vector<Live> live_;
  OwnerId owner_{};

  void add_grants(std::vector<Effect>& effects, RandomChoices::Turn& turn) {
    for (const TokenId tokens : tokens_) {
      if (!random_.chance(0.3)) continue;
      const auto count = static_cast<std::int32_t>(1 + random_.below(2));
      const bool hangs = choices_.has_settled() && random_.chance(0.3);
      const When when = hangs ? choices_.settled(turn) : When{};
      effects.push_back(acquire(tokens, count, when));
      effects.push_back(release(tokens, count, when));
    }
    if (random_.chance(0.3)) effects.push_back(hold(locks_[random_.below(2)]));
  }
  // The watched task frees what was there before if nobody wants it before its end.
  void forward(std::vector<Effect>& effects, ChoiceId fate) {
    for (Live& live : live_) {
      if (!live.when.is_always() || !random_.chance(0.5)) continue;
      effects.push_back(tidegate::free(live.buffer, When::no(fate)));
      live.when = When::yes(fate);
    }
  }
  void free_some(std::vector<Effect>& effects, bool is_last) {
    std::erase_if(live_, [&](const Live& live) {
      if (!is_last && !(choices_.is_decided(live.when) && random_.chance(0.3))) return false;
      effects.push_back(tidegate::free(live.buffer, live.when));
      return true;
    });
  }
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
  RandomChoices choices(toy.builder, random);
  RandomEffects effects(toy, random, choices);
  std::vector<TaskId> tasks;
  const std::uint32_t count = 1 + random.below(60);
  for (std::uint32_t t = 0; t < count; ++t) {
    std::vector<TaskId> after;
    while (!tasks.empty() && random.chance(0.4)) {
      const auto back =
          random.below(static_cast<std::uint32_t>(std::min<std::size_t>(tasks.size(), 12)));
      after.push_back(tasks[tasks.size() - 1 - back]);
    }
    RandomChoices::Turn turn = choices.next(t + 1 == count);
    std::vector<Effect> does =
        has_effects ? effects.next(turn, t + 1 == count) : std::vector<Effect>{};
    does.insert(does.end(), turn.decisions.begin(), turn.decisions.end());
    after.insert(after.end(), turn.after.begin(), turn.after.end());
    // A buffer is freed after every task before, so that no free comes too early.
    const bool frees =
        std::ranges::any_of(does, [](const Effect& e) { return e.kind == Effect::Kind::free; });
    if (frees) after.insert(after.end(), tasks.begin(), tasks.end());
    const Demand demand = random_demand(random, resources, is_rough);
    const auto rank = static_cast<std::uint16_t>(random.below(3));
    tasks.push_back(toy.add(lane[random.below(lanes)], demand, after, does, rank, turn.when));
    choices.added(turn, tasks.back());
  }
  return toy;
}

}  // namespace tidegate
