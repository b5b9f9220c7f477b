#include "tests/validate/train/kernels/primitives.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "tests/catch.hpp"

namespace tidegate::train {
namespace {

constexpr DType types[] = {DType::fp32, DType::bf16, DType::fp16};

// Of a type's number: one unit in the last place is at most this part of it.
double unit_of(DType type) {
  if (type == DType::fp32) return 0x1p-23;
  return type == DType::bf16 ? 0x1p-7 : 0x1p-10;
}

class Checks {
 public:
  Checks(const Backend& backend, double functions, double products)
      : there_(backend), functions_(functions), products_(products) {}

  void products(DType type);
  void elements(DType type);
  void norms(DType type);
  void attention(DType type);
  void rotary(DType type);
  void activations(DType type);
  void ends(DType type);
  void updates();

 private:
  const Backend& there_;
  const Backend& here_ = cpu_backend();
  double functions_, products_;
  std::uint64_t stream_ = 0;

  Values random(std::int64_t count, DType type, double size = 1) {
    Values all(static_cast<std::size_t>(count));
    ++stream_;
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = rounded(static_cast<float>(size * normal(17, stream_, i)), type);
    return all;
  }

  static void same(const Values& a, const Values& b) {
    REQUIRE(a.size() == b.size());
    std::size_t others = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      others += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
    CHECK(others == 0);
  }
  // `sizes`: the largest sum of the sizes of what is added up to a number.
  void near(const Values& a, const Values& b, DType type, double sizes) const {
    if (functions_ == 0) return same(a, b);
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double most = std::max(std::fabs(a[i]), std::fabs(b[i]));
      CHECK(std::fabs(a[i] - b[i]) <= unit_of(type) * most + functions_ * sizes);
    }
  }
  void attention(DType type, const AttentionShape& shape, KeptScores keeps);
};

// Against sums in double: m rows of products of k numbers each.
void Checks::products(DType type) {
  const LinearShape s{.rows = 6, .in = 10, .out = 7};
  const Values x = random(60, type), w = random(70, type), dy = random(42, type),
               before = random(60, DType::fp32);
  const auto near_sum = [&](float made, std::int64_t k, double start, auto a, auto b) {
    double sum = start, sizes = std::fabs(start);
    for (std::int64_t i = 0; i < k; ++i) {
      sum += a(i) * b(i);
      sizes += std::fabs(a(i) * b(i));
    }
    const auto terms = static_cast<double>(start == 0 ? k : k + 1);
    CHECK(std::fabs(made - sum) <= products_ * terms * 0x1p-24 * sizes);
  };
  const auto at = [](const Values& m, std::int64_t width, std::int64_t row, std::int64_t column) {
    return double{m[static_cast<std::size_t>(row * width + column)]};
  };
  const Values y = there_.times_transposed(x, w, s, type),
               dw = there_.weight_gradient(dy, x, s, type);
  Values dx = before;
  there_.add_input_gradient(dy, w, s, type, dx);
  REQUIRE((y.size() == 42 && dw.size() == 70));
  for (std::int64_t r = 0; r < s.rows; ++r) {
    for (std::int64_t o = 0; o < s.out; ++o) {
      near_sum(
          y[static_cast<std::size_t>(r * s.out + o)], s.in, 0,
          [&](auto i) { return at(x, s.in, r, i); }, [&](auto i) { return at(w, s.in, o, i); });
    }
    for (std::int64_t i = 0; i < s.in; ++i) {
      near_sum(
          dx[static_cast<std::size_t>(r * s.in + i)], s.out, at(before, s.in, r, i),
          [&](auto o) { return at(dy, s.out, r, o); }, [&](auto o) { return at(w, s.in, o, i); });
    }
  }
  for (std::int64_t o = 0; o < s.out; ++o) {
    for (std::int64_t i = 0; i < s.in; ++i) {
      near_sum(
          dw[static_cast<std::size_t>(o * s.in + i)], s.rows, 0,
          [&](auto r) { return at(dy, s.out, r, o); }, [&](auto r) { return at(x, s.in, r, i); });
    }
  }
}

void Checks::elements(DType type) {
  const Values a = random(301, type), b = random(301, type), wide = random(301, DType::fp32, 30);
  same(there_.product(a, b, type), here_.product(a, b, type));
  same(there_.column_sums(a, 43), here_.column_sums(a, 43));
  const Values heads = random(240, type);
  for (const std::int64_t group : {1, 2, 4})
    same(there_.sum_groups(heads, group, 5, type), here_.sum_groups(heads, group, 5, type));
  const auto changed = [&](const Backend& by, auto change) {
    Values values = wide;
    change(by, values);
    return values;
  };
  const auto rounding = [&](const Backend& by, Values& v) { by.round(v, type); };
  const auto adding = [&](const Backend& by, Values& v) { by.add(v, a, type); };
  const Values bias = random(43, type);
  const auto biasing = [&](const Backend& by, Values& v) { by.add_to_rows(v, bias, type); };
  same(changed(there_, rounding), changed(here_, rounding));
  same(changed(there_, adding), changed(here_, adding));
  same(changed(there_, biasing), changed(here_, biasing));
}

void Checks::norms(DType type) {
  for (const std::int64_t width : {1, 7, 16}) {
    const Values x = random(9 * width, type), dy = random(9 * width, type),
                 weight = random(width, type), bias = random(width, type);
    for (const Centring centring : {Centring::mean, Centring::none}) {
      for (const bool has_bias : {false, true}) {
        const std::span<const float> b = has_bias ? bias : std::span<const float>();
        const Normed made = there_.norm(x, weight, b, centring, type);
        const Normed like = here_.norm(x, weight, b, centring, type);
        same(made.y, like.y);
        same(made.normalized, like.normalized);
      }
      for (const Values& kept : {Values(), random(9 * width, DType::fp32)}) {
        const NormGradients made = there_.norm_backward(x, dy, weight, kept, centring, type);
        const NormGradients like = here_.norm_backward(x, dy, weight, kept, centring, type);
        same(made.x, like.x);
        same(made.weight, like.weight);
        same(made.bias, like.bias);
      }
    }
  }
}

void Checks::attention(DType type, const AttentionShape& s, KeptScores keeps) {
  INFO(s.heads << " heads of " << s.kv_heads << ", window " << s.window << ", keeps "
               << (keeps == KeptScores::softmax ? "softmax" : "sums"));
  const std::int64_t rows = s.batch * s.length * s.head_dim;
  const Values q = random(rows * s.heads, type), k = random(rows * s.kv_heads, type),
               v = random(rows * s.kv_heads, type), dout = random(rows * s.heads, type);
  const Attended made = there_.attention({q, k, v}, s, keeps, type);
  const Attended like = here_.attention({q, k, v}, s, keeps, type);
  // Shares add up to 1, of values of a size below 5; a gradient of 9 keys or 9 queries of 4 heads,
  // each below 5 · 5 · 4.
  near(made.out, like.out, type, 5);
  near(made.kept, like.kept, keeps == KeptScores::softmax ? type : DType::fp32, 5);
  const ProjectedGradients back =
      there_.attention_backward({q, k, v}, dout, like.kept, s, keeps, type);
  const ProjectedGradients want =
      here_.attention_backward({q, k, v}, dout, like.kept, s, keeps, type);
  near(back.q, want.q, type, 9 * 100);
  near(back.k, want.k, type, 36 * 100);
  near(back.v, want.v, type, 36 * 5);
}

void Checks::attention(DType type) {
  AttentionShape s{.batch = 2, .length = 9, .heads = 4, .kv_heads = 4, .head_dim = 4};
  for (const KeptScores keeps : {KeptScores::log_sums, KeptScores::softmax}) {
    for (s.kv_heads = 4; s.kv_heads > 0; s.kv_heads /= 2) {
      for (s.window = 0; s.window < 12; s.window = 2 * s.window + 1) attention(type, s, keeps);
    }
  }
}

void Checks::rotary(DType type) {
  for (const std::int64_t pairs : {0, 1, 3}) {
    const RotaryShape s{.sequence = 5, .heads = 2, .head_dim = 6, .pairs = pairs};
    for (const double sign : {1.0, -1.0}) {
      Values made = random(2 * 5 * 2 * 6, type);
      Values like = made;
      there_.turn(made, s, sign, type);
      here_.turn(like, s, sign, type);
      near(made, like, type, 10);  // two numbers below 5
    }
  }
}

void Checks::activations(DType type) {
  const Values x = random(300, type, 3), dy = random(300, type);
  for (const Activation kind : {Activation::gelu, Activation::silu, Activation::relu}) {
    near(there_.activated(kind, x, type), here_.activated(kind, x, type), type, 1);
    near(there_.through_activation(kind, dy, x, type), here_.through_activation(kind, dy, x, type),
         type, 5);
  }
}

void Checks::ends(DType type) {
  const std::vector<std::int32_t> ids = {3, 0, 3, 10, 3, 7, 1, 10},
                                  labels = {1, 2, 0, 12, 4, 4, 9, 3};
  const EmbeddingShape s{.hidden = 5, .sequence = 4};
  const Values table = random(11 * 5, type), all_positions = random(4 * 5, type),
               dy = random(8 * 5, type), logits = random(8 * 13, type, 3);
  for (const Values& positions : {Values(), all_positions}) {
    same(there_.embed(ids, table, positions, s, type), here_.embed(ids, table, positions, s, type));
    Values made(table.size(), 0.25F), like = made, made_places(positions.size()),
                                      like_places = made_places;
    there_.embed_backward(ids, dy, s, made, made_places);
    here_.embed_backward(ids, dy, s, like, like_places);
    same(made, like);
    same(made_places, like_places);
  }
  const CrossEntropy made = there_.cross_entropy(logits, labels);
  const CrossEntropy like = here_.cross_entropy(logits, labels);
  CHECK(made.loss == Approx(like.loss).epsilon(1e-12));  // a few units in the last place of doubles
  near(made.log_softmax, like.log_softmax, DType::fp32, 20);
  near(made.softmax, like.softmax, DType::fp32, 1);
  const auto back = [&](const Backend& by, const Values& kept, KeptLogits keeps) {
    return by.cross_entropy_backward(kept, keeps, labels, type);
  };
  near(back(there_, like.softmax, KeptLogits::softmax),
       back(here_, like.softmax, KeptLogits::softmax), type, 1);
  near(back(there_, like.log_softmax, KeptLogits::log_softmax),
       back(here_, like.log_softmax, KeptLogits::log_softmax), type, 1);
}

// Wherever a plan has its optimizer, on a GPU or on cores, it steps alike: no tolerance.
void Checks::updates() {
  struct Kept {
    Values p, m, v;
  };
  Kept made{random(1001, DType::fp32), random(1001, DType::fp32, 1e-3), random(1001, DType::fp32)};
  for (float& v : made.v) v *= v;
  Kept like = made;
  for (std::int64_t step = 1; step < 6; ++step) {
    const Values g = random(1001, DType::bf16, step == 3 ? 1e-20 : 1.0);
    const cpu::AdamOptions options{.rate = 1e-2F, .step = step, .scale = 1.0F / 3};
    there_.adam(made.p, made.m, made.v, g, options);
    here_.adam(like.p, like.m, like.v, g, options);
    same(made.p, like.p);
    same(made.m, like.m);
    same(made.v, like.v);
    there_.sgd(made.p, g, 0.3F, 1.0F / 3);
    here_.sgd(like.p, g, 0.3F, 1.0F / 3);
    same(made.p, like.p);
  }
}

}  // namespace

void check_primitives(const Backend& backend, double functions, double products) {
  Checks checks(backend, functions, products);
  for (const DType type : types) {
    INFO("in " << tidegate::name_of(type));
    checks.products(type);
    checks.elements(type);
    checks.norms(type);
    checks.attention(type);
    checks.rotary(type);
    checks.activations(type);
    checks.ends(type);
  }
  checks.updates();
}

}  // namespace tidegate::train
