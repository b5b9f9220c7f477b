#include "calib/kernels/slices.hpp"

namespace tidegate::cpu {
namespace {

#ifdef TIDEGATE_X86
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace

const Slices* slices_of_cpu(int n) {
  if (n == 0) return &baseline_slices;
#ifdef TIDEGATE_X86
  if (n == 1 && has_avx2()) return &avx2_slices;
  if (n == 2 && has_avx512()) return &avx512_slices;
#endif
  return nullptr;
}

const Slices& slices() {
  static const Slices& best = []() -> const Slices& {
    int n = 0;
    while (slices_of_cpu(n + 1) != nullptr) ++n;
    return *slices_of_cpu(n);
  }();
  return best;
}

}  // namespace tidegate::cpu
