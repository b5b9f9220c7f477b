#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/plan/plan.hpp"

/// Kernels of a GPU trace by what they compute: the classes of models/work.hpp, and what is no
/// computation.
namespace tidegate {

enum class KernelClass : std::uint8_t { matrix_product, attention, elementwise, collective, copy };
constexpr std::size_t kernel_classes = 5;
constexpr std::size_t computing_classes = 3;  ///< the first ones
/// "matrix products"
const char* name_of(KernelClass kind);

/// By words of the kernel's name: nccl and rccl; flash, fmha, sdpa, attention; gemm, nvjet,
/// cutlass, xmma, cublas, matmul, splitKreduce; everything else is elementwise, which stands for
/// all kernels that memory bounds (norms, softmax, reductions, optimizers).
KernelClass class_of_kernel(std::string_view name);

/// Seconds by phase and class.
using ClassTimes = std::array<std::array<double, kernel_classes>, phase_count>;
double total_of(const ClassTimes& times, KernelClass kind);
/// Of the computing classes.
double computing_of(const ClassTimes& times);

}  // namespace tidegate
