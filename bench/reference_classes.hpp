#pragma once

#include <immintrin.h>

#include <bit>

#include "bench/reference_common.hpp"

namespace tidegate::bench {

struct Class {
  double V = 0, tlast = 0,
         rate = 0;  // virtual service, when it was brought up to date, rate per flow
  Entry* heap = nullptr;
  uint32_t n = 0, comp = 0, bit = 0;  // flows in progress, component, index inside the component
  uint32_t slot = 0;                  // place in the list of active classes
  uint32_t nl = 0;                    // links
  uint32_t link[4] = {};              // indices inside the component
  double speed = 0, total = 0;        // processor classes: per-core speed, cores * speed
};
struct Component {
  uint32_t nlinks = 0, words = 0;
  vector<double> cap, rem, cnt;     // per link: capacity; working copies for the filling
  vector<uint32_t> flows;           // per link: flows in progress
  vector<uint64_t> mask, unfrozen;  // per link: active classes; all: active classes not yet frozen
  vector<uint64_t> active;
  vector<uint32_t> cls;  // class index of each bit
  bool dirty = false, cpu = false;
};

template <bool ALL>
struct Classes {
  const Load& w;
  vector<Class> cls;
  vector<Component> comp;
  vector<double> tnext;  // per active class, padded to a multiple of 4
  vector<uint32_t> act;  // active classes
  uint32_t nact = 0;
  vector<uint32_t> task_class, pending, dirty, ready;
  vector<double> finish;
  std::unique_ptr<Entry[]> store;
  vector<uint8_t> touched;
  double t = 0;
  uint64_t done = 0, solves = 0, rounds = 0, batches = 0;
  uint32_t maxn = 0, inflight = 0;

  explicit Classes(const Load& w_) : w(w_) {
    // one class per distinct set of links, one per processor
    const size_t nl = w.link_rate.size();
    vector<vector<uint32_t>> key(w.routes.size());
    vector<uint32_t> route_class(w.routes.size()), host_class(w.hosts.size());
    vector<uint32_t> uf(nl);
    for (uint32_t i = 0; i < nl; i++) uf[i] = i;
    auto find = [&](uint32_t x) {
      while (uf[x] != x) x = uf[x] = uf[uf[x]];
      return x;
    };
    vector<uint32_t> byroute(w.routes.size());
    for (uint32_t r = 0; r < w.routes.size(); r++) {
      key[r] = w.routes[r].links;
      std::sort(key[r].begin(), key[r].end());
      for (uint32_t l : key[r]) uf[find(l)] = find(key[r][0]);
      byroute[r] = r;
    }
    std::sort(byroute.begin(), byroute.end(),
              [&](uint32_t a, uint32_t b) { return key[a] < key[b]; });
    vector<uint32_t> comp_of(nl, UINT32_MAX), pos(nl);
    for (uint32_t l = 0; l < nl; l++) {
      uint32_t root = find(l);
      if (comp_of[root] == UINT32_MAX) {
        comp_of[root] = uint32_t(comp.size());
        comp.emplace_back();
      }
      comp_of[l] = comp_of[root];
      Component& c = comp[comp_of[l]];
      pos[l] = c.nlinks++;
      c.cap.push_back(w.link_rate[l]);
    }
    for (uint32_t k = 0; k < byroute.size(); k++) {
      uint32_t r = byroute[k];
      if (k && key[r] == key[byroute[k - 1]]) {
        route_class[r] = uint32_t(cls.size() - 1);
        continue;
      }
      Class c;
      c.comp = comp_of[key[r][0]];
      for (uint32_t l : key[r]) c.link[c.nl++] = pos[l];
      c.bit = uint32_t(comp[c.comp].cls.size());
      comp[c.comp].cls.push_back(uint32_t(cls.size()));
      route_class[r] = uint32_t(cls.size());
      cls.push_back(c);
    }
    for (uint32_t h = 0; h < w.hosts.size(); h++) {
      Class c;
      c.comp = uint32_t(comp.size());
      c.speed = w.hosts[h].speed;
      c.total = c.speed * w.hosts[h].cores;
      comp.emplace_back();
      comp.back().cpu = true;
      comp.back().cls.push_back(uint32_t(cls.size()));
      host_class[h] = uint32_t(cls.size());
      cls.push_back(c);
    }
    for (auto& c : comp) {
      c.words = uint32_t((c.cls.size() + 63) / 64);
      c.mask.assign(size_t(c.words) * c.nlinks, 0);
      c.active.assign(c.words, 0);
      c.unfrozen = c.active;
      c.flows.assign(c.nlinks, 0);
      c.rem.assign(c.nlinks, 0);
      c.cnt = c.rem;
    }
    size_t n = w.size();
    task_class.resize(n);
    vector<uint32_t> count(cls.size(), 0);
    for (size_t i = 0; i < n; i++)
      count[task_class[i] =
                w.kind[i] == Kind::compute ? host_class[w.where[i]] : route_class[w.where[i]]]++;
    store.reset(new Entry[n]);  // heap of class c: as many entries as it has tasks, touched only as
                                // far as used
    Entry* at = store.get();
    for (size_t c = 0; c < cls.size(); c++) {
      cls[c].heap = at;
      at += count[c];
    }
    tnext.assign((cls.size() + 3) & ~size_t(3), INF);
    act.resize(cls.size());
    touched.assign(cls.size(), 0);
    pending = w.predecessors;
    finish.resize(n);
    dirty.reserve(comp.size());
    ready.reserve(n);
  }

  void mark(uint32_t ci) {
    Component& k = comp[cls[ci].comp];
    touched[ci] = 1;
    if (!k.dirty) {
      k.dirty = true;
      dirty.push_back(cls[ci].comp);
    }
  }
  static void advance(Class& c, double t) {
    c.V += c.rate * (t - c.tlast);
    c.tlast = t;
  }
  void start(uint32_t task) {
    uint32_t ci = task_class[task];
    Class& c = cls[ci];
    if (c.n == 0) {
      c.V = 0;
      c.rate = 0;
      c.tlast = t;
      act[c.slot = nact++] = ci;
      Component& k = comp[c.comp];
      uint64_t b = 1ull << (c.bit & 63);
      uint32_t wd = c.bit >> 6;
      k.active[wd] |= b;
      for (uint32_t j = 0; j < c.nl; j++) k.mask[size_t(c.link[j]) * k.words + wd] |= b;
    } else if (c.tlast != t)
      advance(c, t);
    heap_push(c.heap, c.n++, {c.V + w.amount[task], task});
    for (uint32_t j = 0; j < c.nl; j++) comp[c.comp].flows[c.link[j]]++;
    mark(ci);
    maxn = std::max(maxn, ++inflight);
  }
  void complete_class(uint32_t ci) {  // its earliest flow ends now
    Class& c = cls[ci];
    Component& k = comp[c.comp];
    advance(c, t);
    double lim = c.V + (std::fabs(c.V) * TIE + c.rate * t * TIE);
    do {
      uint32_t task = c.heap[0].task;
      heap_pop(c.heap, c.n--);
      for (uint32_t j = 0; j < c.nl; j++) k.flows[c.link[j]]--;
      finish[task] = t;
      done++;
      inflight--;
      for (uint32_t e = w.first_successor[task]; e < w.first_successor[task + 1]; e++)
        if (!--pending[w.successors[e]]) ready.push_back(w.successors[e]);
    } while (c.n && c.heap[0].end <= lim);
    if (c.n == 0) {
      uint64_t b = ~(1ull << (c.bit & 63));
      uint32_t wd = c.bit >> 6;
      k.active[wd] &= b;
      for (uint32_t j = 0; j < c.nl; j++) k.mask[size_t(c.link[j]) * k.words + wd] &= b;
      uint32_t last = act[--nact];
      act[c.slot] = last;
      tnext[c.slot] = tnext[nact];
      cls[last].slot = c.slot;
      tnext[nact] = INF;
    }
    mark(ci);
  }
  void set_rate(uint32_t ci, double r) {
    Class& c = cls[ci];
    if (r == c.rate && !touched[ci]) return;
    if (c.tlast != t) advance(c, t);
    c.rate = r;
    touched[ci] = 0;
    double left = c.heap[0].end - c.V;
    tnext[c.slot] = left > 0 ? t + left / r : t;
  }
  void solve(Component& k) {
    solves++;
    if (k.cpu) {
      Class& c = cls[k.cls[0]];
      if (c.n) set_rate(k.cls[0], std::min(c.speed, c.total / c.n));
      return;
    }
    const uint32_t W = k.words, L = k.nlinks;
    double* __restrict rem = k.rem.data();
    double* __restrict cnt = k.cnt.data();
    for (uint32_t l = 0; l < L; l++) {
      rem[l] = k.cap[l];
      cnt[l] = k.flows[l];
    }
    uint64_t left = 0;
    for (uint32_t x = 0; x < W; x++) left += std::popcount(k.unfrozen[x] = k.active[x]);
    while (left) {
      rounds++;
      double share = INF;
      uint32_t b = 0;
      for (uint32_t l = 0; l < L; l++) {
        double s = cnt[l] > 0.5 ? rem[l] / cnt[l] : INF;
        if (s < share) share = s, b = l;
      }
      for (uint32_t x = 0; x < W; x++) {
        uint64_t m = k.mask[size_t(b) * W + x] & k.unfrozen[x];
        k.unfrozen[x] &= ~m;
        left -= std::popcount(m);
        while (m) {
          uint32_t ci = k.cls[x * 64 + std::countr_zero(m)];
          m &= m - 1;
          Class& c = cls[ci];
          for (uint32_t j = 0; j < c.nl; j++) {
            rem[c.link[j]] -= share * c.n;
            cnt[c.link[j]] -= c.n;
          }
          set_rate(ci, share);
        }
      }
      cnt[b] = 0;
    }
  }
  void start_ready() {
    for (uint32_t i = 0; i < ready.size(); i++) start(ready[i]);
    ready.clear();
  }
  void run() {
    for (uint32_t i = 0; i < w.size(); i++)
      if (!w.predecessors[i]) ready.push_back(i);
    start_ready();
    double* tn = tnext.data();
    uint32_t due[256];
    while (done < w.size()) {
      if (ALL) {
        for (auto& k : comp) solve(k), k.dirty = false;
      } else
        for (uint32_t k : dirty) solve(comp[k]), comp[k].dirty = false;
      dirty.clear();
      const size_t nc = nact;
      __m256d m = _mm256_set1_pd(INF);
      for (size_t i = 0; i < nc; i += 4) m = _mm256_min_pd(m, _mm256_loadu_pd(tn + i));
      __m128d h = _mm_min_pd(_mm256_castpd256_pd128(m), _mm256_extractf128_pd(m, 1));
      t = std::min(_mm_cvtsd_f64(h), _mm_cvtsd_f64(_mm_unpackhi_pd(h, h)));
      if (t == INF) break;
      m = _mm256_set1_pd(t * (1 + TIE));
      uint32_t nd = 0;
      for (size_t i = 0; i < nc && nd < 252; i += 4) {
        int b = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(tn + i), m, _CMP_LE_OQ));
        for (; b; b &= b - 1) due[nd++] = act[i + std::countr_zero(unsigned(b))];
      }
      batches++;
      for (uint32_t d = 0; d < nd; d++) complete_class(due[d]);
      start_ready();
    }
  }
};

}  // namespace tidegate::bench
