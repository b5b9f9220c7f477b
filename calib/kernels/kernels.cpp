#include "calib/kernels/kernels.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "calib/kernels/slices.hpp"
#include "models/base/error.hpp"

namespace tidegate::cpu {
namespace {

// A cache line of fp32: no two threads write into one, where the arrays start at lines.
constexpr std::size_t line = 16;

// Calls part(begin, end) for contiguous parts of [0, n), one per thread, cut at multiples of
// `granule`.
template <class Part>
void in_parts(std::size_t n, std::size_t granule, int threads, const Part& part) {
  ensure(threads >= 1, "a kernel has a thread");
  if (threads == 1) return part(std::size_t{0}, n);
  const std::size_t granules = (n + granule - 1) / granule;
#pragma omp parallel num_threads(threads)
  {
    const auto mine = static_cast<std::size_t>(omp_get_thread_num());
    const auto all = static_cast<std::size_t>(omp_get_num_threads());
    const std::size_t begin = std::min(n, granules * mine / all * granule);
    const std::size_t end = std::min(n, granules * (mine + 1) / all * granule);
    if (begin < end) part(begin, end);
  }
}

}  // namespace

AdamStep step_of(const AdamOptions& o) {
  ensure(o.step >= 1, "steps of Adam count from 1");
  const auto t = static_cast<double>(o.step);
  const double beta1 = double{o.beta1}, beta2 = double{o.beta2}, rate = double{o.rate};
  return {.scale = o.scale,
          .beta1 = o.beta1,
          .rest1 = static_cast<float>(1 - beta1),
          .beta2 = o.beta2,
          .rest2 = static_cast<float>(1 - beta2),
          .keep = static_cast<float>(1 - rate * double{o.decay}),
          .rate = static_cast<float>(rate / (1 - std::pow(beta1, t))),
          .root = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t))),
          .epsilon = o.epsilon};
}

namespace {

auto widen(DType type) {
  ensure(type == DType::bf16 || type == DType::fp16, "a cast is between fp32 and bf16 or fp16");
  return type == DType::bf16 ? slices().from_bf16 : slices().from_fp16;
}
auto narrow(DType type) {
  ensure(type == DType::bf16 || type == DType::fp16, "a cast is between fp32 and bf16 or fp16");
  return type == DType::bf16 ? slices().to_bf16 : slices().to_fp16;
}

}  // namespace

double fma_chain(std::int64_t rounds, int threads, double& sum) {
  std::vector<double> sums(static_cast<std::size_t>(threads));
  in_parts(sums.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) sums[i] = slices().fma(rounds, 1.0F, 1.0F);
  });
  sum = 0;
  for (const double one : sums) sum += one;
  return 2.0 * static_cast<double>(rounds) * static_cast<double>(slices().fma_lanes) * threads;
}

double read(std::span<const float> a, int threads) {
  std::atomic<std::uint32_t> sum = 0;
  in_parts(a.size(), line, threads, [&](std::size_t begin, std::size_t end) {
    sum += slices().read(a.data() + begin, end - begin);
  });
  return sum;
}

void fill(std::span<float> a, float value, int threads) {
  in_parts(a.size(), line, threads, [&](std::size_t begin, std::size_t end) {
    slices().fill(a.data() + begin, value, end - begin);
  });
}

void copy(std::span<const float> from, std::span<float> to, int threads) {
  ensure(from.size() == to.size(), "a copy has two equal sizes");
  in_parts(to.size(), line, threads, [&](std::size_t begin, std::size_t end) {
    slices().copy(from.data() + begin, to.data() + begin, end - begin);
  });
}

void copy_streaming(std::span<const float> from, std::span<float> to, int threads) {
  ensure(from.size() == to.size(), "a copy has two equal sizes");
  in_parts(to.size(), line, threads, [&](std::size_t begin, std::size_t end) {
    slices().copy_streaming(from.data() + begin, to.data() + begin, end - begin);
  });
}

void triad(std::span<const float> b, std::span<const float> c, float scale, std::span<float> a,
           int threads) {
  ensure(b.size() == a.size() && c.size() == a.size(), "a triad has three equal sizes");
  in_parts(a.size(), line, threads, [&](std::size_t begin, std::size_t end) {
    slices().triad(b.data() + begin, c.data() + begin, scale, a.data() + begin, end - begin);
  });
}

void cast(std::span<const half> from, DType type, std::span<float> to, int threads) {
  ensure(from.size() == to.size(), "a cast has two equal sizes");
  const auto convert = widen(type);
  in_parts(to.size(), 2 * line, threads, [&](std::size_t begin, std::size_t end) {
    convert(from.data() + begin, to.data() + begin, end - begin);
  });
}

void cast(std::span<const float> from, DType type, std::span<half> to, int threads) {
  ensure(from.size() == to.size(), "a cast has two equal sizes");
  const auto convert = narrow(type);
  in_parts(to.size(), 2 * line, threads, [&](std::size_t begin, std::size_t end) {
    convert(from.data() + begin, to.data() + begin, end - begin);
  });
}

void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
          std::span<const float> gradient, const AdamOptions& options, int threads) {
  const std::size_t n = parameters.size();
  ensure(first.size() == n && second.size() == n && gradient.size() == n,
         "Adam has four arrays of one size");
  const AdamStep step = step_of(options);
  in_parts(n, line, threads, [&](std::size_t begin, std::size_t end) {
    slices().adam(parameters.data() + begin, first.data() + begin, second.data() + begin,
                  gradient.data() + begin, end - begin, step);
  });
}

void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
          std::span<const half> gradient, DType type, std::span<half> out,
          const AdamOptions& options, int threads) {
  const std::size_t n = parameters.size();
  ensure(first.size() == n && second.size() == n && gradient.size() == n,
         "Adam has four arrays of one size");
  ensure(out.empty() || out.size() == n, "Adam writes all parameters or none in 16 bits");
  const AdamStep step = step_of(options);
  const auto to_float = widen(type);
  const auto to_half = narrow(type);
  in_parts(n, 2 * line, threads, [&](std::size_t begin, std::size_t end) {
    // Gradients are widened piece by piece into the first-level cache, not through memory.
    alignas(64) std::array<float, 1024> widened;
    for (std::size_t i = begin; i < end; i += widened.size()) {
      const std::size_t count = std::min(widened.size(), end - i);
      to_float(gradient.data() + i, widened.data(), count);
      slices().adam(parameters.data() + i, first.data() + i, second.data() + i, widened.data(),
                    count, step);
      if (!out.empty()) to_half(parameters.data() + i, out.data() + i, count);
    }
  });
}

double squared_norm(std::span<const float> a, bool& finite, int threads) {
  std::vector<double> sums((a.size() + norm_block - 1) / norm_block);
  in_parts(sums.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t at = i * norm_block;
      sums[i] = slices().squares(a.data() + at, std::min(norm_block, a.size() - at));
    }
  });
  double sum = 0;
  for (const double one : sums) sum += one;
  // The square of a finite fp32 is below 2^256: their sum cannot leave the doubles.
  finite = std::isfinite(sum);
  return sum;
}

}  // namespace tidegate::cpu
