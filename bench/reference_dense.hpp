#pragma once

#include "bench/reference_classes.hpp"

namespace tidegate::bench {

// Dense arrays per component over its active classes only (a class takes a slot while it has
// flows); every array is padded so that vectors need no tail.
struct Dense {
  struct Comp {
    uint32_t nc = 0, L = 0, pl = 0, W = 0;  // classes; links, padded; words of class bits
    uint32_t na = 0;                        // active classes
    bool cpu = false, dirty = false;
    double tlast = 0, speed = 0, total = 0;
    vector<double> V, rate, top, cap, rem, cnt;  // per slot, then per link
    vector<uint32_t> n, cls, slot;               // per slot: flows, class; per class: slot
    vector<Entry*> heap, store;                  // per slot; per class
    vector<uint16_t> ind, row, flows,
        delta;                        // 1 where the slot (class) crosses the link; flows per link
    vector<uint64_t> mask, unfrozen;  // per link: slots crossing it; slots not yet frozen
    struct Links {
      uint32_t n, l[4];
    };
    vector<Links> lk;  // per class
  };
  const Load& w;
  vector<Comp> comp;
  vector<double> tmin;
  vector<uint32_t> pending, dirty, ready;
  struct Where {
    uint32_t comp, bit;
  };
  vector<Where> where;  // per task
  vector<double> finish;
  std::unique_ptr<Entry[]> store;
  double t = 0;
  uint64_t done = 0, solves = 0, rounds = 0, batches = 0;
  uint32_t maxn = 0, inflight = 0, due[64];

  explicit Dense(const Load& w_) : w(w_) {
    Classes<false> s(w);  // reuses its grouping
    comp.resize(s.comp.size());
    for (size_t k = 0; k < comp.size(); k++) {
      auto& a = s.comp[k];
      Comp& c = comp[k];
      c.nc = uint32_t(a.cls.size());
      const uint32_t pc = (c.nc + 3) & ~3u;
      c.L = a.nlinks;
      c.pl = (c.L + 15) & ~15u;
      c.W = a.words;
      c.cpu = a.cpu;
      c.V.assign(pc, 0);
      c.rate = c.V;
      c.top.assign(pc, INF);
      c.n.assign(pc, 0);
      c.cls = c.n;
      c.slot.assign(c.nc, UINT32_MAX);
      c.cap.assign(c.pl, 0);
      std::copy(a.cap.begin(), a.cap.end(), c.cap.begin());
      c.rem = c.cnt = c.cap;
      c.flows.assign(c.pl, 0);
      c.delta = c.flows;
      c.row.assign(size_t(c.nc) * c.pl, 0);
      c.ind = c.row;
      c.mask.assign(size_t(c.W) * c.L, 0);
      c.unfrozen.assign(c.W, 0);
      c.heap.resize(pc);
      c.store.resize(c.nc);
      c.lk.resize(c.nc);
      for (uint32_t b = 0; b < c.nc; b++) {
        Class& x = s.cls[a.cls[b]];
        c.store[b] = x.heap;
        c.speed = x.speed, c.total = x.total;
        c.lk[b].n = x.nl;
        for (uint32_t j = 0; j < x.nl; j++) {
          c.row[size_t(b) * c.pl + x.link[j]] = 1;
          c.lk[b].l[j] = x.link[j];
        }
      }
    }
    where.resize(w.size());
    for (size_t i = 0; i < w.size(); i++)
      where[i] = {s.cls[s.task_class[i]].comp, s.cls[s.task_class[i]].bit};
    store = std::move(s.store);
    pending = std::move(s.pending);
    finish = std::move(s.finish);
    tmin.assign((comp.size() + 3) & ~size_t(3), INF);
    dirty.reserve(comp.size());
    ready.reserve(w.size());
  }
  void advance(Comp& c) {
    __m256d dt = _mm256_set1_pd(t - c.tlast);
    c.tlast = t;
    for (uint32_t i = 0; i < c.na; i += 4)
      _mm256_storeu_pd(&c.V[i],
                       _mm256_fmadd_pd(_mm256_loadu_pd(&c.rate[i]), dt, _mm256_loadu_pd(&c.V[i])));
  }
  void touch(uint32_t k) {
    Comp& c = comp[k];
    if (c.tlast != t) advance(c);
    if (!c.dirty) c.dirty = true, dirty.push_back(k);
  }
  static void set_bits(Comp& c, uint32_t cls, uint32_t s, bool on) {
    for (uint32_t j = 0; j < c.lk[cls].n; j++) {
      uint64_t& m = c.mask[size_t(c.lk[cls].l[j]) * c.W + (s >> 6)];
      if (on)
        m |= 1ull << (s & 63);
      else
        m &= ~(1ull << (s & 63));
    }
  }
  static uint32_t take_slot(Comp& c, uint32_t cls) {
    uint32_t s = c.slot[cls] = c.na++;
    c.cls[s] = cls;
    c.V[s] = c.rate[s] = 0;
    c.n[s] = 0;
    c.heap[s] = c.store[cls];
    if (!c.cpu) {
      std::copy_n(&c.row[size_t(cls) * c.pl], c.pl, &c.ind[size_t(s) * c.pl]);
      set_bits(c, cls, s, true);
    }
    return s;
  }
  static void drop_slot(Comp& c, uint32_t s) {
    uint32_t z = --c.na;
    c.slot[c.cls[s]] = UINT32_MAX;
    if (!c.cpu) set_bits(c, c.cls[s], s, false);
    if (z != s) {
      c.cls[s] = c.cls[z], c.slot[c.cls[z]] = s;
      c.V[s] = c.V[z], c.rate[s] = c.rate[z], c.top[s] = c.top[z], c.n[s] = c.n[z],
      c.heap[s] = c.heap[z];
      std::copy_n(&c.ind[size_t(z) * c.pl], c.pl, &c.ind[size_t(s) * c.pl]);
      set_bits(c, c.cls[z], z, false);
      set_bits(c, c.cls[z], s, true);
    }
    c.top[z] = INF;
    c.rate[z] = c.V[z] = 0;
  }
  void start(uint32_t task) {
    auto [k, cls] = where[task];
    touch(k);
    Comp& c = comp[k];
    uint32_t b = c.slot[cls];
    if (b == UINT32_MAX) b = take_slot(c, cls);
    heap_push(c.heap[b], c.n[b]++, {c.V[b] + w.amount[task], task});
    c.top[b] = c.heap[b][0].end;
    for (uint32_t j = 0; j < c.lk[cls].n; j++) c.flows[c.lk[cls].l[j]]++;
    maxn = std::max(maxn, ++inflight);
  }
  void complete(Comp& c, uint32_t b) {
    const auto& lk = c.lk[c.cls[b]];
    double lim = c.V[b] + (std::fabs(c.V[b]) + c.rate[b] * t) * TIE;
    do {
      uint32_t task = c.heap[b][0].task;
      heap_pop(c.heap[b], c.n[b]--);
      for (uint32_t j = 0; j < lk.n; j++) c.flows[lk.l[j]]--;
      finish[task] = t;
      done++;
      inflight--;
      for (uint32_t e = w.first_successor[task]; e < w.first_successor[task + 1]; e++)
        if (!--pending[w.successors[e]]) ready.push_back(w.successors[e]);
    } while (c.n[b] && c.heap[b][0].end <= lim);
    if (c.n[b])
      c.top[b] = c.heap[b][0].end;
    else
      drop_slot(c, b);
  }
  void complete_comp(uint32_t k) {  // every flow of the component that ends now
    touch(k);
    Comp& c = comp[k];
    if (c.cpu) return complete(c, 0);
    uint32_t nd = 0;
    const __m256d tt = _mm256_set1_pd(t * TIE), tie = _mm256_set1_pd(TIE);
    for (uint32_t i = 0; i < c.na; i += 4) {
      __m256d V = _mm256_loadu_pd(&c.V[i]);
      __m256d lim = _mm256_fmadd_pd(V, tie, _mm256_fmadd_pd(_mm256_loadu_pd(&c.rate[i]), tt, V));
      int m = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(&c.top[i]), lim, _CMP_LE_OQ));
      for (; m && nd < 64; m &= m - 1) due[nd++] = i + uint32_t(std::countr_zero(unsigned(m)));
    }
    for (uint32_t d = nd; d--;)
      complete(c, due[d]);  // backwards: dropping a slot moves the last one there
    if (!nd) {              // rounding left the earliest flow just short of its end
      uint32_t b = 0;
      double best = INF;
      for (uint32_t i = 0; i < c.na; i++)
        if ((c.top[i] - c.V[i]) / c.rate[i] < best) best = (c.top[i] - c.V[i]) / c.rate[i], b = i;
      complete(c, b);
    }
  }
  // SMALL: few active classes, their links are updated one by one; else 16 links at a time.
  template <bool SMALL>
  void fill(Comp& c) {
    const uint32_t W = (c.na + 63) / 64, L = (c.L + 3) & ~3u;
    double* __restrict rem = c.rem.data();
    double* __restrict cnt = c.cnt.data();
    uint16_t* __restrict delta = c.delta.data();
    for (uint32_t l = 0; l < L; l++) rem[l] = c.cap[l], cnt[l] = c.flows[l];
    uint64_t left = c.na;
    for (uint32_t x = 0; x < W; x++) c.unfrozen[x] = ~0ull;
    if (c.na & 63) c.unfrozen[W - 1] = (1ull << (c.na & 63)) - 1;
    const __m256d inf = _mm256_set1_pd(INF), zero = _mm256_setzero_pd();
    while (left) {
      rounds++;
      __m256d best = inf, at = zero, idx = _mm256_set_pd(3, 2, 1, 0);
      for (uint32_t l = 0; l < L; l += 4) {
        __m256d n = _mm256_loadu_pd(cnt + l);
        __m256d s = _mm256_div_pd(_mm256_loadu_pd(rem + l), n);
        s = _mm256_blendv_pd(inf, s, _mm256_cmp_pd(n, zero, _CMP_GT_OQ));
        __m256d less = _mm256_cmp_pd(s, best, _CMP_LT_OQ);
        best = _mm256_blendv_pd(best, s, less);
        at = _mm256_blendv_pd(at, idx, less);
        idx = _mm256_add_pd(idx, _mm256_set1_pd(4));
      }
      double bs[4], bi[4];
      _mm256_storeu_pd(bs, best);
      _mm256_storeu_pd(bi, at);
      int j = bs[1] < bs[0], q = 2 + (bs[3] < bs[2]);
      if (bs[q] < bs[j]) j = q;
      const double share = bs[j];
      const uint32_t b = uint32_t(bi[j]);
      const uint64_t* mask = &c.mask[size_t(b) * c.W];
      left = 0;
      if (SMALL) {
        uint64_t m = mask[0] & c.unfrozen[0];
        left = c.unfrozen[0] &= ~m;
        for (; m; m &= m - 1) {
          uint32_t i = uint32_t(std::countr_zero(m));
          c.rate[i] = share;
          const auto& lk = c.lk[c.cls[i]];
          for (uint32_t j = 0; j < lk.n; j++)
            rem[lk.l[j]] -= share * c.n[i], cnt[lk.l[j]] -= c.n[i];
        }
      } else if (c.pl == 16) {
        __m256i acc = _mm256_setzero_si256();
        for (uint32_t x = 0; x < W; x++) {
          uint64_t m = mask[x] & c.unfrozen[x];
          left |= c.unfrozen[x] &= ~m;
          for (; m; m &= m - 1) {
            uint32_t i = x * 64 + uint32_t(std::countr_zero(m));
            c.rate[i] = share;
            acc = _mm256_add_epi16(
                acc,
                _mm256_mullo_epi16(
                    _mm256_set1_epi16(short(c.n[i])),
                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&c.ind[size_t(i) * 16]))));
          }
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(delta), acc);
        for (uint32_t l = 0; l < 16; l++) rem[l] -= share * delta[l], cnt[l] -= delta[l];
      } else {
        for (uint32_t x = 0; x < W; x++) {
          uint64_t m = mask[x] & c.unfrozen[x];
          left |= c.unfrozen[x] &= ~m;
          for (; m; m &= m - 1) {
            uint32_t i = x * 64 + uint32_t(std::countr_zero(m));
            c.rate[i] = share;
            const auto& lk = c.lk[c.cls[i]];
            for (uint32_t j = 0; j < lk.n; j++)
              rem[lk.l[j]] -= share * c.n[i], cnt[lk.l[j]] -= c.n[i];
          }
        }
      }
      cnt[b] = 0;
    }
  }
  void solve(uint32_t k) {
    solves++;
    Comp& c = comp[k];
    c.dirty = false;
    if (c.cpu) {
      if (!c.n[0]) {
        tmin[k] = INF;
        return;
      }
      c.rate[0] = c.n[0] * c.speed <= c.total ? c.speed : c.total / c.n[0];
      tmin[k] = t + (c.top[0] - c.V[0]) / c.rate[0];
      return;
    }
    if (c.na <= 8)
      fill<true>(c);
    else
      fill<false>(c);
    __m256d m = _mm256_set1_pd(INF);
    for (uint32_t i = 0; i < c.na; i += 4)
      m = _mm256_min_pd(
          m, _mm256_div_pd(_mm256_sub_pd(_mm256_loadu_pd(&c.top[i]), _mm256_loadu_pd(&c.V[i])),
                           _mm256_loadu_pd(&c.rate[i])));
    __m128d h = _mm_min_pd(_mm256_castpd256_pd128(m), _mm256_extractf128_pd(m, 1));
    tmin[k] = t + std::max(0.0, std::min(_mm_cvtsd_f64(h), _mm_cvtsd_f64(_mm_unpackhi_pd(h, h))));
  }
  void run() {
    for (uint32_t i = 0; i < w.size(); i++)
      if (!w.predecessors[i]) ready.push_back(i);
    const size_t nk = tmin.size();
    while (done < w.size()) {
      for (uint32_t i = 0; i < ready.size(); i++) start(ready[i]);
      ready.clear();
      for (uint32_t k : dirty) solve(k);
      dirty.clear();
      __m256d m = _mm256_set1_pd(INF);
      for (size_t i = 0; i < nk; i += 4) m = _mm256_min_pd(m, _mm256_loadu_pd(&tmin[i]));
      __m128d h = _mm_min_pd(_mm256_castpd256_pd128(m), _mm256_extractf128_pd(m, 1));
      t = std::min(_mm_cvtsd_f64(h), _mm_cvtsd_f64(_mm_unpackhi_pd(h, h)));
      if (t == INF) break;
      batches++;
      m = _mm256_set1_pd(t * (1 + TIE));
      for (size_t i = 0; i < nk; i += 4) {
        int b = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd(&tmin[i]), m, _CMP_LE_OQ));
        for (; b; b &= b - 1) complete_comp(uint32_t(i) + uint32_t(std::countr_zero(unsigned(b))));
      }
    }
  }
};

}  // namespace tidegate::bench
