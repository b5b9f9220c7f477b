#include "validate/engine/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "calib/kernels/kernels.hpp"
#include "models/base/error.hpp"
#include "validate/engine/gaps.hpp"

namespace tidegate {
namespace {

constexpr int one_thread = 1;
constexpr std::int64_t page = 4096;
constexpr std::int64_t stream_bytes = std::int64_t{8} << 20;  // each of from and to

std::int64_t count_of(Bytes bytes) { return static_cast<std::int64_t>(std::ceil(bytes.value())); }

std::int64_t size_of(DType type) { return static_cast<std::int64_t>(bytes_per_element(type)); }

std::int64_t arrays(std::initializer_list<std::int64_t> bytes) {
  std::int64_t sum = 0;
  for (const std::int64_t b : bytes) sum += whole_pages(b);
  return sum;
}

// The product that stands for a kernel, and how often it is done.
struct Product {
  std::int64_t m, n, k, times;
};
Product product_of(const Gemm& g) { return {g.m, g.n, g.k, g.batch}; }
Product product_of(const Attention& a) {
  const double one = 2.0 * static_cast<double>(a.queries * a.keys * a.head_dim);
  return {a.queries, a.keys, a.head_dim,
          std::max<std::int64_t>(1, std::llround(flops_of(Kernel(a)).value() / one))};
}

std::int64_t own_memory(const Product& p) {
  return arrays({4 * p.m * p.k, 4 * p.k * p.n, 4 * p.m * p.n});
}

void multiply(const Product& p, Carving own) {
  const auto a = own.take<float>(p.m * p.k), b = own.take<float>(p.k * p.n);
  const auto c = own.take<float>(p.m * p.n);
  for (std::int64_t i = 0; i < p.times; ++i) {
    cpu::gemm(p.m, p.n, p.k, a.data(), b.data(), c.data(), one_thread);
  }
}

struct MemoryOf {
  bool with_kernels;

  std::int64_t operator()(const Delay&) const { return 0; }
  std::int64_t operator()(const Compute& c) const {
    std::int64_t most = 0;
    if (!with_kernels) return most;
    for (const Kernel& kernel : c.kernels) most = std::max(most, std::visit(*this, kernel));
    return most;
  }
  std::int64_t operator()(const Gemm& g) const { return own_memory(product_of(g)); }
  std::int64_t operator()(const Attention& a) const { return own_memory(product_of(a)); }
  std::int64_t operator()(const Elementwise&) const { return 2 * stream_bytes; }
  std::int64_t operator()(const Copy& c) const {
    return arrays({count_of(c.bytes), count_of(c.bytes)});
  }
  std::int64_t operator()(const FileIo& io) const { return arrays({count_of(io.bytes)}); }
  std::int64_t operator()(const AdamStep& a) const {
    const std::int64_t n = a.parameters;
    return arrays({4 * n, 4 * n, 4 * n, size_of(a.gradient) * n});
  }
  std::int64_t operator()(const Cast& c) const {
    return arrays({size_of(c.from) * c.elements, size_of(c.to) * c.elements});
  }
  std::int64_t operator()(const Collective& c) const {
    return arrays({count_of(c.bytes), count_of(c.bytes)});
  }
};

struct Round {
  int copies, sums;
};
// Of the whole buffer, for `members` that each move (members - 1) / members of it.
Round round_of(CollectiveKind kind, int members) {
  const int others = std::max(1, members - 1);
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
    case CollectiveKind::all_to_all:
      return {others, 0};
    case CollectiveKind::reduce_scatter:
      return {0, others};
    case CollectiveKind::all_reduce:
      return {others, others};
  }
  ensure(false, "every collective has a round");
  return {};
}

}  // namespace

std::span<std::byte> Carving::bytes(std::int64_t count) {
  const auto wanted = static_cast<std::size_t>(whole_pages(count));
  ensure(wanted <= rest_.size(), "a thread has memory for its largest work");
  const auto front = rest_.first(wanted);
  rest_ = rest_.subspan(wanted);
  return front;
}

// Bits 0x3f00 to 0x3fff are 0.5 to 2 as bf16 or as the upper half of an fp32, 1.75 to 2 as fp16.
void fill_ordinary(std::span<std::byte> memory) {
  for (std::size_t i = 0; i + sizeof(cpu::half) <= memory.size(); i += sizeof(cpu::half)) {
    const auto bits = static_cast<cpu::half>(0x3f00 + i / sizeof(cpu::half) % 0x100);
    std::memcpy(memory.data() + i, &bits, sizeof bits);
  }
}

std::int64_t own_memory(const Work& work, bool with_kernels) {
  return std::visit(MemoryOf{with_kernels}, work);
}

Slice slice(std::int64_t size, std::int64_t k, std::int64_t n, std::int64_t grain) {
  const auto border = [&](std::int64_t i) {
    const double exact =
        static_cast<double>(size) * static_cast<double>(i) / static_cast<double>(n);
    const auto grains = static_cast<std::int64_t>(exact / static_cast<double>(grain));
    return i == n ? size : std::min(size, grains * grain);
  };
  return {border(k), border(k + 1)};
}

void do_copy(std::span<const std::byte> from, std::span<std::byte> to) {
  const std::size_t floats = from.size() / sizeof(float), rest = floats * sizeof(float);
  cpu::copy_streaming({reinterpret_cast<const float*>(from.data()), floats},
                      {reinterpret_cast<float*>(to.data()), floats}, one_thread);
  std::memcpy(to.data() + rest, from.data() + rest, from.size() - rest);
}

void do_adam(const AdamStep& adam, Carving own, std::int64_t k, std::int64_t n, int threads) {
  const auto [first, last] = slice(adam.parameters, k, n, page);
  const auto from = static_cast<std::size_t>(first), count = static_cast<std::size_t>(last - first);
  const auto p = own.take<float>(adam.parameters).subspan(from, count);
  const auto m = own.take<float>(adam.parameters).subspan(from, count);
  const auto v = own.take<float>(adam.parameters).subspan(from, count);
  if (adam.gradient == DType::fp32) {
    const auto g = own.take<float>(adam.parameters).subspan(from, count);
    cpu::adam(p, m, v, g, {}, threads);
  } else {
    const auto g = own.take<cpu::half>(adam.parameters).subspan(from, count);
    cpu::adam(p, m, v, g, adam.gradient, {}, {}, threads);
  }
}

void do_cast(const Cast& cast, Carving own, std::int64_t k, std::int64_t n, int threads) {
  const auto [first, last] = slice(cast.elements, k, n, page);
  const auto at = static_cast<std::size_t>(first), count = static_cast<std::size_t>(last - first);
  const auto in = own.bytes(size_of(cast.from) * cast.elements);
  const auto out = own.bytes(size_of(cast.to) * cast.elements);
  auto* const floats_in = reinterpret_cast<float*>(in.data());
  auto* const floats_out = reinterpret_cast<float*>(out.data());
  auto* const halves_in = reinterpret_cast<cpu::half*>(in.data());
  auto* const halves_out = reinterpret_cast<cpu::half*>(out.data());
  if (size_of(cast.from) == size_of(cast.to)) {
    const auto size = static_cast<std::size_t>(size_of(cast.from));
    std::memcpy(out.data() + at * size, in.data() + at * size, count * size);
  } else if (cast.from == DType::fp32) {
    cpu::cast(std::span(floats_in + at, count), cast.to, std::span(halves_out + at, count),
              threads);
  } else {
    cpu::cast(std::span(halves_in + at, count), cast.from, std::span(floats_out + at, count),
              threads);
  }
}

void do_collective(const Collective& c, Carving own, std::int64_t k, std::int64_t n) {
  const auto [first, last] = slice(count_of(c.bytes), k, n, page);
  const auto at = static_cast<std::size_t>(first), count = static_cast<std::size_t>(last - first);
  const auto from = own.bytes(count_of(c.bytes)).subspan(at, count);
  const auto to = own.bytes(count_of(c.bytes)).subspan(at, count);
  const auto [copies, sums] = round_of(c.kind, c.gpus);
  for (int i = 0; i < copies; ++i) std::memcpy(to.data(), from.data(), count);
  auto* const sum = reinterpret_cast<float*>(to.data());
  const auto* const term = reinterpret_cast<const float*>(from.data());
  for (int i = 0; i < sums; ++i) {
    for (std::size_t j = 0; j < count / sizeof(float); ++j) sum[j] += term[j];
  }
}

void do_kernel(const Kernel& kernel, Carving own) {
  if (const auto* gemm = std::get_if<Gemm>(&kernel)) return multiply(product_of(*gemm), own);
  if (const auto* attention = std::get_if<Attention>(&kernel)) {
    return multiply(product_of(*attention), own);
  }
  // Half of the bytes are read, half are written.
  std::int64_t left = count_of(std::get<Elementwise>(kernel).bytes) / 2;
  const auto from = own.take<float>(stream_bytes / 4), to = own.take<float>(stream_bytes / 4);
  for (; left > 0; left -= stream_bytes) {
    const auto count = static_cast<std::size_t>(std::min(left, stream_bytes) / 4);
    cpu::copy(from.first(count), to.first(count), one_thread);
  }
}

}  // namespace tidegate
