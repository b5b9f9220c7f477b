#pragma once

#include <cstdint>
#include <span>

#include "calib/kernels/kernels.hpp"
#include "calib/kernels/products.hpp"

/// The kernels of kernels.hpp as plain loops: their specification. cast, adam, copy and triad give
/// the same bits as the kernels; gemm, multiply and squared_norm add in
/// another order.
namespace tidegate::cpu::reference {

double read(std::span<const float> a);
void triad(std::span<const float> b, std::span<const float> c, float scale, std::span<float> a);

void cast(std::span<const half> from, DType type, std::span<float> to);
void cast(std::span<const float> from, DType type, std::span<half> to);

void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
          std::span<const float> gradient, const AdamOptions& options);
void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
          std::span<const half> gradient, DType type, std::span<half> out,
          const AdamOptions& options);

double squared_norm(std::span<const float> a, bool& finite);

/// Row by row, so that C, and B where it is not transposed, are read along their rows.
void multiply(const Product& product, const float* a, const float* b, float* c);
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c);

}  // namespace tidegate::cpu::reference
