#include "bench/simgrid_replay.hpp"

#include <simgrid/s4u.hpp>

#include "bench/measure.hpp"

namespace tidegate::bench {
namespace {

namespace sg = simgrid::s4u;
using Id = std::uint32_t;
constexpr Id none = std::numeric_limits<Id>::max();

class Simulation {
 public:
  explicit Simulation(const Load& load)
      : load_(load), end_(load.size()), pending_(load.predecessors), slot_(load.size()) {
    auto* zone = sg::create_full_zone("root");
    for (const Host& h : load.hosts) {
      hosts_.push_back(zone->create_host(h.name, h.speed)->set_core_count(h.cores)->seal());
    }
    std::vector<const sg::Link*> links;
    for (std::size_t l = 0; l < load.link_rate.size(); ++l) {
      auto* link = zone->create_link("link" + std::to_string(l), load.link_rate[l]);
      links.push_back(link->set_latency(0.0)->seal());
    }
    for (const Route& r : load.routes) {
      std::vector<sg::LinkInRoute> route;
      for (const Id l : r.links) route.emplace_back(links[l]);
      zone->add_route(hosts_[r.from]->get_netpoint(), hosts_[r.to]->get_netpoint(), nullptr,
                      nullptr, route, false);
    }
    zone->seal();
  }

  void prepare(Style style) { style == Style::on_demand ? prepare_on_demand() : prepare_actors(); }
  std::vector<double> ends() { return std::move(end_); }

 private:
  const Load& load_;
  std::vector<sg::Host*> hosts_;
  std::vector<double> end_;
  std::vector<Id> pending_;

  // On demand: activities in progress by slot.
  std::vector<sg::ActivityPtr> live_;
  std::vector<Id> slot_, free_slots_, ended_;
  // Actors: by stream.
  std::vector<std::vector<Id>> order_;
  std::vector<sg::SemaphorePtr> gate_;
  std::vector<Id> awaited_;

  sg::ActivityPtr activity(Id task) const {
    if (load_.kind[task] == Kind::compute) {
      return sg::Exec::init()
          ->set_flops_amount(load_.amount[task])
          ->set_host(hosts_[load_.where[task]]);
    }
    const Route& r = load_.routes[load_.where[task]];
    return sg::Comm::sendto_init(hosts_[r.from], hosts_[r.to])
        ->set_payload_size(static_cast<std::uint64_t>(load_.amount[task]));
  }
  template <class Visit>
  void each_released(Id task, Visit&& visit) {
    for (Id i = load_.first_successor[task]; i < load_.first_successor[task + 1]; ++i) {
      const Id next = load_.successors[i];
      if (--pending_[next] == 0) visit(next);
    }
  }

  void launch(Id task) {
    const sg::ActivityPtr a = activity(task);
    a->set_data(reinterpret_cast<void*>(static_cast<std::uintptr_t>(task)));
    if (free_slots_.empty()) {
      free_slots_.push_back(static_cast<Id>(live_.size()));
      live_.emplace_back();
    }
    slot_[task] = free_slots_.back();
    free_slots_.pop_back();
    live_[slot_[task]] = a;
    a->vetoable_start();
  }
  void prepare_on_demand() {
    sg::Activity::on_completion_cb([this](const sg::Activity& a) {
      for (const Id slot : ended_) live_[slot] = nullptr, free_slots_.push_back(slot);
      ended_.clear();
      const auto task = static_cast<Id>(reinterpret_cast<std::uintptr_t>(a.get_data<void>()));
      end_[task] = sg::Engine::get_clock();
      each_released(task, [this](Id next) { launch(next); });
      ended_.push_back(slot_[task]);  // SimGrid still uses it: released at the next completion
    });
    for (Id t = 0; t < load_.size(); ++t) {
      if (load_.predecessors[t] == 0) launch(t);
    }
  }

  void prepare_actors() {
    order_.resize(load_.stream_width.size());
    awaited_.assign(order_.size(), none);
    for (Id t = 0; t < load_.size(); ++t) order_[load_.stream[t]].push_back(t);
    for (Id s = 0; s < order_.size(); ++s) {
      gate_.push_back(sg::Semaphore::create(0));
      if (!order_[s].empty())
        sg::Actor::create("stream" + std::to_string(s), place_of(s), [this, s] { act(s); });
    }
  }
  sg::Host* place_of(Id stream) const {
    for (const Id t : order_[stream]) {
      if (load_.kind[t] == Kind::compute) return hosts_[load_.where[t]];
    }
    return hosts_[0];
  }
  void act(Id stream) {
    for (const Id task : order_[stream]) {
      if (pending_[task] > 0) {
        awaited_[stream] = task;
        gate_[stream]->acquire();
      }
      if (load_.kind[task] == Kind::compute) {
        sg::this_actor::execute(load_.amount[task]);
      } else {
        const Route& r = load_.routes[load_.where[task]];
        sg::Comm::sendto(hosts_[r.from], hosts_[r.to],
                         static_cast<std::uint64_t>(load_.amount[task]));
      }
      end_[task] = sg::Engine::get_clock();
      each_released(task, [this](Id next) {
        const Id other = load_.stream[next];
        if (awaited_[other] != next) return;
        awaited_[other] = none;
        gate_[other]->release();
      });
    }
  }
};

}  // namespace

Replay replay(const Load& load, Style style, Updates updates) {
  std::vector<std::string> words = {"replay",
                                    "--log=root.thresh:error",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=network/bandwidth-factor:1",
                                    "--cfg=network/latency-factor:1",
                                    "--cfg=network/weight-S:0"};
  const std::string optim = updates == Updates::lazy ? "Lazy" : "Full";
  words.push_back("--cfg=network/optim:" + optim);
  words.push_back("--cfg=cpu/optim:" + optim);
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  const double begin = cpu_seconds();
  sg::Engine engine(&argc, argv.data());
  // Never destroyed: SimGrid's callbacks refer to it until the process ends.
  auto* simulation = new Simulation(load);
  simulation->prepare(style);
  Replay result;
  const double start = cpu_seconds();
  engine.run();
  result.seconds = cpu_seconds() - start;
  result.setup_seconds = start - begin;
  result.makespan = sg::Engine::get_clock();
  result.end = simulation->ends();
  return result;
}

}  // namespace tidegate::bench
