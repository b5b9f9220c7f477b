#include <algorithm>
#include <limits>
#include <string>

#include "calib/kernels/kernels.hpp"
#include "calib/kernels/reference.hpp"
#include "calib/kernels/slices.hpp"
#include "models/base/error.hpp"

#ifdef TIDEGATE_BLAS
#include <cblas.h>
#endif

namespace tidegate::cpu {

#ifdef TIDEGATE_BLAS

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c,
          int threads) {
  ensure(std::max({m, n, k}) <= std::numeric_limits<blasint>::max(), "BLAS counts in 32 bits");
  ensure(std::min({m, n, k}) >= 0 && threads >= 1, "a product has sizes and a thread");
  const auto rows = static_cast<blasint>(m), columns = static_cast<blasint>(n);
  const auto inner = static_cast<blasint>(k);
  // The number is one of the whole library: it is only touched when it changes.
  if (openblas_get_num_threads() != threads) openblas_set_num_threads(threads);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, inner, 1.0F, a,
              std::max(inner, 1), b, std::max(columns, 1), 0.0F, c, std::max(columns, 1));
}

const char* blas_name() {
  static const std::string name = [] {
    const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE …"
    const std::size_t version_end = config.find(' ', config.find(' ') + 1);
    return config.substr(0, version_end) + " (" + openblas_get_corename() + ")";
  }();
  return name.c_str();
}

std::string blas_remedy() {
  const std::string core = openblas_get_corename(), set = slices().name;
  if (core != "Prescott" || set == "baseline") return "";
  return set == "avx512" ? "OPENBLAS_CORETYPE=SkylakeX" : "OPENBLAS_CORETYPE=Haswell";
}

#else

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c,
          int) {
  reference::gemm(m, n, k, a, b, c);
}

const char* blas_name() { return "none (plain loops)"; }
std::string blas_remedy() { return ""; }

#endif

}  // namespace tidegate::cpu
