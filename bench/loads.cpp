#include "bench/loads.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "models/base/error.hpp"

namespace tidegate::bench {
namespace {

using Id = std::uint32_t;
constexpr Id none = std::numeric_limits<Id>::max();

Id to_id(int v) { return static_cast<Id>(v); }
Id size_of(const auto& list) { return static_cast<Id>(list.size()); }

// splitmix64: the same loads in every program.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  Id below(Id n) { return static_cast<Id>(next() % n); }
  double bytes() {  // mean 4e8
    const double u = uniform();
    return 1e8 * (1 + 9 * u * u);
  }

 private:
  std::uint64_t state_;
};

class Builder {
 public:
  Load load;

  Id add(Kind kind, Id where, double amount, Id stream) {
    load.kind.push_back(kind);
    load.where.push_back(where);
    const auto whole = static_cast<double>(static_cast<std::uint64_t>(amount));
    load.amount.push_back(kind == Kind::flow ? whole : amount);
    load.stream.push_back(stream);
    if (stream >= load.stream_width.size()) load.stream_width.resize(stream + 1, 1);
    return size_of(load.kind) - 1;
  }
  void order(Id before, Id after) { edges_.emplace_back(before, after); }
  Load finish() {
    load.predecessors.assign(load.size(), 0);
    load.first_successor.assign(load.size() + 1, 0);
    load.successors.resize(edges_.size());
    for (const auto& [before, after] : edges_) {
      ++load.first_successor[before + 1];
      ++load.predecessors[after];
    }
    for (std::size_t i = 0; i < load.size(); ++i) {
      load.first_successor[i + 1] += load.first_successor[i];
    }
    std::vector<Id> at(load.first_successor.begin(), load.first_successor.end() - 1);
    for (const auto& [before, after] : edges_) load.successors[at[before]++] = after;
    return std::move(load);
  }

 private:
  std::vector<std::pair<Id, Id>> edges_;
};

// Hosts: one per GPU, one CPU whose cores they share, one drive. Links: PCIe per GPU and direction,
// a switch per direction, the drive's two directions. CPU, switch and drive grow with the GPUs.
void training_node(Load& load, int gpus) {
  const double scale = gpus / 4.0;
  for (int g = 0; g < gpus; ++g) load.hosts.push_back({"gpu" + std::to_string(g)});
  const Id cpu = to_id(gpus), drive = cpu + 1;
  load.hosts.push_back({"cpu", 1e9, std::max(1, static_cast<int>(8 * scale))});
  load.hosts.push_back({"drive"});
  const Id up = 2 * to_id(gpus), down = up + 1, write = up + 2, read = up + 3;
  load.link_rate.assign(up, 25e9);
  for (const double rate : {40e9, 40e9, 12e9, 22e9}) load.link_rate.push_back(rate * scale);
  for (Id g = 0; g < cpu; ++g) load.routes.push_back({g, drive, {2 * g, up, write}});
  for (Id g = 0; g < cpu; ++g) load.routes.push_back({drive, g, {read, down, 2 * g + 1}});
  load.routes.push_back({drive, cpu, {read}});
  load.routes.push_back({cpu, drive, {write}});
}

// Forward of layer i, then its write (two in flight); backward of layer i with the read issued when
// layer i + 3 is done; then sub-groups: read, update on the CPU, write (three in flight). One short
// task joins all GPUs before the next step. Nine streams per GPU, and one for the join.
class TrainingSteps {
 public:
  TrainingSteps(int gpus, int layers, int subgroups, double jitter)
      : gpus_(to_id(gpus)), layers_(layers), subgroups_(subgroups), jitter_(jitter) {
    training_node(builder_.load, gpus);
  }
  void step() {
    std::vector<Id> last;
    for (Id g = 0; g < gpus_; ++g) {
      forward(g);
      backward(g);
      update(g, last);
    }
    join_ = builder_.add(Kind::compute, gpus_, 1e6, gpus_ * 9);
    for (const Id task : last) builder_.order(task, join_);
  }
  Load finish() { return builder_.finish(); }

 private:
  Builder builder_;
  Random random_{42};
  Id gpus_, join_ = none;
  int layers_, subgroups_;
  double jitter_;
  std::vector<Id> forward_, write_, backward_;

  double about(double x) { return x * (1 + jitter_ * (2 * random_.uniform() - 1)); }

  void forward(Id g) {
    forward_.clear(), write_.clear();
    for (int i = 0; i < layers_; ++i) {
      const Id f = builder_.add(Kind::compute, g, about(20e6), g * 9);
      const Id before = i > 0 ? forward_.back() : join_;
      if (before != none) builder_.order(before, f);
      const Id w = builder_.add(Kind::flow, g, about(80e6), g * 9 + 1 + to_id(i % 2));
      builder_.order(f, w);
      if (i >= 2) builder_.order(write_[static_cast<std::size_t>(i) - 2], w);
      forward_.push_back(f), write_.push_back(w);
    }
  }
  void backward(Id g) {
    const auto count = static_cast<std::size_t>(layers_);
    backward_.assign(count, none);
    for (std::size_t i = count; i-- > 0;) {
      const Id r =
          builder_.add(Kind::flow, gpus_ + g, about(80e6), g * 9 + 3 + static_cast<Id>(i % 3));
      builder_.order(write_[i], r);
      builder_.order(i + 3 < count ? backward_[i + 3] : forward_.back(), r);
      backward_[i] = builder_.add(Kind::compute, g, about(40e6), g * 9);
      builder_.order(r, backward_[i]);
      builder_.order(i + 1 < count ? backward_[i + 1] : forward_.back(), backward_[i]);
    }
  }
  void update(Id g, std::vector<Id>& last) {
    std::vector<Id> writes;
    for (int s = 0; s < subgroups_; ++s) {
      const Id stream = g * 9 + 6 + to_id(s % 3);
      const Id r = builder_.add(Kind::flow, 2 * gpus_, about(400e6), stream);
      builder_.order(s >= 3 ? writes[static_cast<std::size_t>(s) - 3] : backward_[0], r);
      const Id u = builder_.add(Kind::compute, gpus_, about(150e6), stream);
      builder_.order(r, u);
      writes.push_back(builder_.add(Kind::flow, 2 * gpus_ + 1, about(400e6), stream));
      builder_.order(u, writes.back());
    }
    const std::size_t open = std::min<std::size_t>(3, writes.size());
    last.insert(last.end(), writes.end() - static_cast<std::ptrdiff_t>(open), writes.end());
    if (writes.empty()) last.push_back(backward_[0]);
  }
};

// Every ordered pair of hosts has a route over three random links.
void random_network(Load& load, Random& random, Id links, Id hosts) {
  for (Id h = 0; h < hosts; ++h) load.hosts.push_back({"host" + std::to_string(h)});
  for (Id l = 0; l < links; ++l) load.link_rate.push_back(1e9 * (1 + 0.3 * random.uniform()));
  for (Id from = 0; from < hosts; ++from) {
    for (Id to = 0; to < hosts; ++to) {
      if (from == to) continue;
      Route route{from, to, {}};
      while (route.links.size() < std::min<Id>(3, links)) {
        const Id l = random.below(links);
        if (std::ranges::find(route.links, l) == route.links.end()) route.links.push_back(l);
      }
      load.routes.push_back(route);
    }
  }
}

double mean_use_of_busiest(const Load& load, double bytes) {
  std::vector<double> use(load.link_rate.size());
  for (const Route& route : load.routes) {
    for (const Id l : route.links) use[l] += bytes / load.link_rate[l];
  }
  return *std::ranges::max_element(use) / static_cast<double>(load.routes.size());
}

Demand demand_of(const Load& load, std::size_t task) {
  Demand demand;
  demand.amount = load.amount[task];
  if (load.kind[task] == Kind::compute) {
    const Host& host = load.hosts[load.where[task]];
    demand.alone = Seconds(demand.amount / host.speed);
    demand.use(static_cast<ResourceId>(load.where[task]), 1.0 / host.cores);
    return demand;
  }
  double slowest = std::numeric_limits<double>::infinity();
  for (const Id l : load.routes[load.where[task]].links)
    slowest = std::min(slowest, load.link_rate[l]);
  demand.alone = Seconds(demand.amount / slowest);
  for (const Id l : load.routes[load.where[task]].links) {
    demand.use(static_cast<ResourceId>(load.hosts.size() + l), slowest / load.link_rate[l]);
  }
  return demand;
}

}  // namespace

Load train(int gpus, int layers, int subgroups, int steps, double jitter) {
  TrainingSteps training(gpus, layers, subgroups, jitter);
  for (int i = 0; i < steps; ++i) training.step();
  return training.finish();
}

Load stress(int chains, int links, int hosts, int flows) {
  Builder builder;
  Random random(7);
  random_network(builder.load, random, to_id(links), to_id(hosts));
  const Id k = to_id(chains);
  for (Id i = 0; i < to_id(flows); ++i) {
    const double bytes = random.bytes();
    builder.add(Kind::flow, random.below(size_of(builder.load.routes)), bytes, i % k);
    if (i >= k) builder.order(i - k, i);
  }
  return builder.finish();
}

Load open_arrivals(double load, int links, int hosts, int flows) {
  Builder builder;
  Random random(11);
  random_network(builder.load, random, to_id(links), to_id(hosts));
  builder.load.hosts.push_back({"clock"});
  const double gap = mean_use_of_busiest(builder.load, 4e8) / load;
  Id tick = none;
  for (int i = 0; i < flows; ++i) {
    const double pause = 1e9 * gap * (0.5 + random.uniform());
    const Id next = builder.add(Kind::compute, to_id(hosts), pause, 0);
    if (tick != none) builder.order(tick, next);
    tick = next;
    const double bytes = random.bytes();
    builder.order(tick,
                  builder.add(Kind::flow, random.below(size_of(builder.load.routes)), bytes, 1));
  }
  if (flows > 0) builder.load.stream_width[1] = std::numeric_limits<std::uint16_t>::max();
  return builder.finish();
}

PricedPlan priced_plan(const Load& load, Memory memory) {
  PricedPlan priced;
  priced.resources.resize(load.hosts.size() + load.link_rate.size());
  PlanBuilder builder;
  std::vector<LaneId> lanes;
  for (const std::uint16_t width : load.stream_width)
    lanes.push_back(builder.lane("stream", 0, width));
  const PoolId pool = builder.pool("host", {Tier::host, 0}, Bytes(1e15));
  const OwnerId owner = builder.owner("flows");
  std::vector<std::vector<TaskId>> after(load.size());
  for (Id t = 0; t < load.size(); ++t) {
    for (Id i = load.first_successor[t]; i < load.first_successor[t + 1]; ++i) {
      after[load.successors[i]].push_back(static_cast<TaskId>(t));
    }
  }
  for (Id t = 0; t < load.size(); ++t) {
    std::vector<Effect> effects;
    if (memory == Memory::tracked && load.kind[t] == Kind::flow) {
      const BufferId buffer = builder.buffer(pool, owner, Bytes(load.amount[t]));
      effects = {allocate(buffer), tidegate::free(buffer)};
    }
    // The work is only the demand's number: the engine never looks inside.
    const WorkId work = builder.work(Delay{Seconds(t + 1.0)});
    builder.add({"task", lanes[load.stream[t]], 0, static_cast<std::int32_t>(t)}, work, after[t],
                effects);
    priced.demands.push_back(demand_of(load, t));
    after[t] = {};
  }
  priced.plan = builder.finish(1, 1);
  return priced;
}

Load parse_load(const std::vector<std::string>& words) {
  const auto number = [&](std::size_t i) {
    double v = 0;
    const std::string& w = words[i];
    if (std::from_chars(w.data(), w.data() + w.size(), v).ptr != w.data() + w.size()) {
      throw InputError("'" + w + "' is not a number");
    }
    return v;
  };
  const auto whole = [&](std::size_t i) { return static_cast<int>(number(i)); };
  if (words.size() == 5 || (words.size() == 6 && words[0] == "train")) {
    if (words[0] == "stress") return stress(whole(1), whole(2), whole(3), whole(4));
    if (words[0] == "open") return open_arrivals(number(1), whole(2), whole(3), whole(4));
    if (words[0] == "train") {
      return train(whole(1), whole(2), whole(3), whole(4), words.size() > 5 ? number(5) : 0.2);
    }
  }
  throw InputError("write train G L S STEPS [JITTER], stress K R H N or open LOAD R H N");
}

}  // namespace tidegate::bench
