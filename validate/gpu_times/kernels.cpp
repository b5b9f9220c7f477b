#include "validate/gpu_times/kernels.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>

namespace tidegate {
namespace {

// Kernels of cuBLAS carry gemm, xmma or (since Hopper) nvjet in their names, its split-k sums
// splitKreduce; FlashAttention flash_fwd and flash_bwd, memory-efficient attention and cuDNN fmha
// and sdpa. Attention comes first: its kernels are built of CUTLASS too.
constexpr std::array<std::string_view, 2> collective_words = {"nccl", "rccl"};
constexpr std::array<std::string_view, 4> attention_words = {"flash", "fmha", "sdpa", "attention"};
constexpr std::array<std::string_view, 8> product_words = {
    "gemm", "gemv", "nvjet", "cutlass", "xmma", "cublas", "matmul", "splitkreduce"};

bool has_any(const std::string& name, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

}  // namespace

const char* name_of(KernelClass kind) {
  switch (kind) {
    case KernelClass::matrix_product:
      return "matrix products";
    case KernelClass::attention:
      return "attention";
    case KernelClass::elementwise:
      return "elementwise kernels";
    case KernelClass::collective:
      return "collectives";
    case KernelClass::copy:
      return "copies";
  }
  return "";
}

KernelClass class_of_kernel(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (has_any(lower, collective_words)) return KernelClass::collective;
  if (has_any(lower, attention_words)) return KernelClass::attention;
  if (has_any(lower, product_words)) return KernelClass::matrix_product;
  return KernelClass::elementwise;
}

double total_of(const ClassTimes& times, KernelClass kind) {
  double sum = 0;
  for (const auto& phase : times) sum += phase[static_cast<std::size_t>(kind)];
  return sum;
}

double computing_of(const ClassTimes& times) {
  double sum = 0;
  for (const auto& phase : times) {
    for (std::size_t c = 0; c < computing_classes; ++c) sum += phase[c];
  }
  return sum;
}

}  // namespace tidegate
