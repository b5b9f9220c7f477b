#include "calib/cuda/settings.hpp"

#include <algorithm>
#include <cmath>

namespace tidegate::cuda {
namespace {

using calib::Effort;

constexpr std::int64_t mib = std::int64_t{1} << 20;

struct Network {
  std::int64_t hidden, feed_forward, vocabulary;
};

std::vector<Network> networks(Effort effort) {
  std::vector<Network> all{{4096, 11008, 32000}};
  if (effort != Effort::quick) all.push_back({8192, 28672, 32000});
  if (effort == Effort::full) all.push_back({12288, 49152, 50257});
  return all;
}

std::vector<std::int64_t> tokens(Effort effort) {
  if (effort == Effort::quick) return {2048};
  if (effort == Effort::standard) return {2048, 8192};
  return {512, 2048, 8192, 32768};
}

// The cuBLASLt of fp8 takes multiples of 16.
bool is_allowed(const Gemm& g) {
  return g.dtype != DType::fp8 || (g.m % 16 == 0 && g.n % 16 == 0 && g.k % 16 == 0);
}

void add(std::vector<Gemm>& shapes, const Gemm& shape) {
  if (is_allowed(shape) && std::ranges::find(shapes, shape) == shapes.end()) {
    shapes.push_back(shape);
  }
}

std::int64_t step_of(Effort effort) {
  if (effort == Effort::quick) return 16;
  return effort == Effort::standard ? 4 : 2;
}

std::vector<std::int64_t> powers(std::int64_t first, std::int64_t last, std::int64_t step) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = first; size < last; size *= step) sizes.push_back(size);
  sizes.push_back(last);
  return sizes;
}

}  // namespace

std::vector<Gemm> training_shapes(Effort effort, DType dtype) {
  std::vector<Gemm> shapes;
  for (const auto& [h, ffn, vocabulary] : networks(effort)) {
    for (const std::int64_t m : tokens(effort)) {
      const std::vector<std::pair<std::int64_t, std::int64_t>> outputs_inputs{
          {3 * h, h}, {h, h}, {4 * h, h}, {h, 4 * h}, {ffn, h}, {h, ffn}, {vocabulary, h}};
      for (const auto& [n, k] : outputs_inputs) add(shapes, {m, n, k, 1, dtype});
    }
  }
  return shapes;
}

std::vector<Gemm> grid_shapes(Effort effort, DType dtype) {
  std::vector<Gemm> shapes;
  const std::int64_t step = effort == Effort::quick ? 4 : 2;
  for (std::int64_t n = 64; n <= 16384; n *= step) add(shapes, {n, n, n, 1, dtype});
  if (effort == Effort::quick) return shapes;
  for (const std::int64_t more : {1, 8, 64}) {
    const std::int64_t n = 4096 + more;
    add(shapes, {n, 4096, 4096, 1, dtype});
    add(shapes, {4096, n, 4096, 1, dtype});
    add(shapes, {4096, 4096, n, 1, dtype});
  }
  return shapes;
}

std::vector<std::int64_t> attention_lengths(Effort effort) {
  if (effort == Effort::quick) return {1024, 4096};
  return powers(512, effort == Effort::full ? 8192 : 4096, 2);
}

std::vector<std::int64_t> copy_sizes(Effort effort) {
  auto sizes = powers(4096, 1024 * mib, step_of(effort));
  if (effort != Effort::quick) {
    // 12 KiB, 1.5 MiB + 4 KiB, 100 MB rounded to pages.
    for (const std::int64_t odd :
         {std::int64_t{12288}, std::int64_t{1576960}, std::int64_t{99999744}}) {
      sizes.push_back(odd);
    }
  }
  std::ranges::sort(sizes);
  return sizes;
}

std::vector<std::int64_t> collective_sizes(Effort effort) {
  return powers(4096, 1024 * mib, step_of(effort));
}

std::vector<std::int64_t> pin_sizes(Effort effort, double most) {
  auto sizes = powers(mib, 8192 * mib, effort == Effort::quick ? 16 : 4);
  std::erase_if(sizes, [&](std::int64_t size) { return static_cast<double>(size) > most; });
  return sizes;
}

std::vector<std::int64_t> traffic_sizes(Effort effort, double most) {
  const auto last = static_cast<std::int64_t>(most) / mib * mib;
  if (last < mib) return {};
  return powers(mib, last, effort == Effort::quick ? 16 : 4);
}

int rotation(double cache, double times, double footprint) {
  return static_cast<int>(std::clamp(std::ceil(times * cache / footprint), 1.0, 256.0));
}

}  // namespace tidegate::cuda
