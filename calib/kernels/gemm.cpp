#include <algorithm>
#include <limits>
#include <string>

#include "calib/kernels/kernels.hpp"
#include "calib/kernels/products.hpp"
#include "calib/kernels/reference.hpp"
#include "calib/kernels/slices.hpp"
#include "models/base/error.hpp"

#ifdef TIDEGATE_BLAS
#include <cblas.h>
#endif

namespace tidegate::cpu {

#ifdef TIDEGATE_BLAS

void multiply(const Product& p, const float* a, const float* b, float* c, int threads) {
  ensure(std::max({p.m, p.n, p.k}) <= std::numeric_limits<blasint>::max(),
         "BLAS counts in 32 bits");
  ensure(std::min({p.m, p.n, p.k}) >= 0 && threads >= 1, "a product has sizes and a thread");
  const auto rows = static_cast<blasint>(p.m), columns = static_cast<blasint>(p.n);
  const auto inner = static_cast<blasint>(p.k);
  // The number is one of the whole library: it is only touched when it changes.
  if (openblas_get_num_threads() != threads) openblas_set_num_threads(threads);
  cblas_sgemm(CblasRowMajor, p.a_is_transposed ? CblasTrans : CblasNoTrans,
              p.b_is_transposed ? CblasTrans : CblasNoTrans, rows, columns, inner, 1.0F, a,
              std::max(p.a_is_transposed ? rows : inner, 1), b,
              std::max(p.b_is_transposed ? inner : columns, 1), p.adds ? 1.0F : 0.0F, c,
              std::max(columns, 1));
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

void multiply(const Product& p, const float* a, const float* b, float* c, int) {
  reference::multiply(p, a, b, c);
}

const char* blas_name() { return "none (plain loops)"; }
std::string blas_remedy() { return ""; }

#endif

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c,
          int threads) {
  multiply({.m = m, .n = n, .k = k}, a, b, c, threads);
}

}  // namespace tidegate::cpu
