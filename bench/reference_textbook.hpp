#pragma once

#include "bench/reference_common.hpp"

namespace tidegate::bench {

// Textbook version, for the ablation: per-flow state, everything recomputed after every event.
struct Textbook {
  const Load& w;
  struct Flow {
    double left, rate;
    uint32_t task;
  };
  vector<Flow> act;
  vector<uint32_t> pending, ready;
  vector<double> finish, rem, cnt;
  vector<uint8_t> frozen;
  double t = 0;
  uint64_t done = 0, solves = 0, rounds = 0, batches = 0;
  uint32_t maxn = 0;
  explicit Textbook(const Load& w_) : w(w_), pending(w_.predecessors), finish(w_.size()) {
    act.reserve(w.size());
    ready.reserve(w.size());
    frozen.reserve(w.size());
  }
  void solve() {
    solves++;
    const size_t L = w.link_rate.size();
    rem.assign(w.link_rate.begin(), w.link_rate.end());
    cnt.assign(L + w.hosts.size(), 0);
    frozen.assign(act.size(), 0);
    size_t left = 0;
    for (auto& f : act) {
      if (w.kind[f.task] == Kind::compute)
        cnt[L + w.where[f.task]]++;
      else {
        for (uint32_t l : w.routes[w.where[f.task]].links) cnt[l]++;
        left++;
      }
    }
    for (size_t i = 0; i < act.size(); i++)
      if (w.kind[act[i].task] == Kind::compute) {
        auto& h = w.hosts[w.where[act[i].task]];
        act[i].rate = std::min(h.speed, h.speed * h.cores / cnt[L + w.where[act[i].task]]);
        frozen[i] = 1;
      }
    while (left) {
      rounds++;
      double share = INF;
      int b = -1;
      for (size_t l = 0; l < L; l++)
        if (cnt[l] > 0.5 && rem[l] / cnt[l] < share) share = rem[l] / cnt[l], b = int(l);
      for (size_t i = 0; i < act.size(); i++) {
        if (frozen[i]) continue;
        auto& ls = w.routes[w.where[act[i].task]].links;
        if (std::find(ls.begin(), ls.end(), b) == ls.end()) continue;
        frozen[i] = 1;
        act[i].rate = share;
        left--;
        for (uint32_t l : ls) rem[l] -= share, cnt[l] -= 1;
      }
      cnt[b] = 0;
    }
  }
  void run() {
    for (uint32_t i = 0; i < w.size(); i++)
      if (!w.predecessors[i]) ready.push_back(i);
    while (done < w.size()) {
      for (uint32_t i : ready) act.push_back({w.amount[i], 0, i});
      ready.clear();
      maxn = std::max(maxn, uint32_t(act.size()));
      solve();
      double dt = INF;
      for (auto& f : act) dt = std::min(dt, f.left / f.rate);
      t += dt;
      batches++;
      for (size_t i = 0; i < act.size();) {
        Flow& f = act[i];
        f.left -= f.rate * dt;
        if (f.left <= f.rate * t * TIE) {
          finish[f.task] = t;
          done++;
          for (uint32_t e = w.first_successor[f.task]; e < w.first_successor[f.task + 1]; e++)
            if (!--pending[w.successors[e]]) ready.push_back(w.successors[e]);
          f = act.back();
          act.pop_back();
        } else
          i++;
      }
    }
  }
};

}  // namespace tidegate::bench
