#include <algorithm>

#include <fmt/core.h>

#include "calib/kernels/products.hpp"
#include "models/base/error.hpp"

#ifdef TIDEGATE_ONEDNN
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace tidegate::cpu {

#ifdef TIDEGATE_ONEDNN

namespace {

using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

// oneDNN takes as many threads as OpenMP would give the caller, both when a product is made ready
// and when it runs.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// Values of cpu_isa are sets of bits: a larger instruction set has those of what it includes.
bool has(dnnl::cpu_isa least) {
  const auto bits = static_cast<unsigned>(least);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

// Version 3 (Debian 13) makes a primitive's description without a description of the operation.
dnnl::matmul prepared(const dnnl::engine& engine, const dnnl::memory::desc& a,
                      const dnnl::memory::desc& b, const dnnl::memory::desc& c, bool adds) {
  dnnl::primitive_attr attributes;
  dnnl::post_ops after;
  if (adds) after.append_sum();
  attributes.set_post_ops(after);
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul({engine, a, b, c, attributes});
#else
  return dnnl::matmul({dnnl::matmul::desc(a, b, c), attributes, engine});
#endif
}

}  // namespace

bool multiplies(DType type) {
  if (type == DType::fp32) return true;
  if (type == DType::bf16) return has(dnnl::cpu_isa::avx512_core_bf16);
#if DNNL_VERSION_MAJOR >= 3
  if (type == DType::fp16) return has(dnnl::cpu_isa::avx512_core_fp16);
#endif
  return false;
}

std::string multiplier_name(DType type) {
  const dnnl_version_t& v = *dnnl_version();
  const std::string library = fmt::format("oneDNN {}.{}.{}", v.major, v.minor, v.patch);
  if (!multiplies(type)) {
    return fmt::format("none: {} uses no instructions of this CPU for {}", library, name_of(type));
  }
  const bool has_tiles = type == DType::bf16 && has(dnnl::cpu_isa::avx512_core_amx);
  return fmt::format("{} ({}, {})", library, has_tiles ? "AMX" : "AVX-512", name_of(type));
}

void multiply(const Product& p, const half* a, const half* b, DType type, float* c, int threads) {
  ensure(type != DType::fp32 && multiplies(type), "the CPU multiplies matrices of the type");
  ensure(std::min({p.m, p.n, p.k}) >= 0 && threads >= 1, "a product has sizes and a thread");
  if (p.m == 0 || p.n == 0) return;
  if (p.k == 0) {
    if (!p.adds) std::fill_n(c, p.m * p.n, 0.0F);
    return;
  }
  const Threads used(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const Type of_operands = type == DType::bf16 ? Type::bf16 : Type::f16;
  const dnnl::memory::desc of_a({p.m, p.k}, of_operands, p.a_is_transposed ? Tag::ba : Tag::ab);
  const dnnl::memory::desc of_b({p.k, p.n}, of_operands, p.b_is_transposed ? Tag::ba : Tag::ab);
  const dnnl::memory::desc of_c({p.m, p.n}, Type::f32, Tag::ab);
  // The library writes neither operand.
  const dnnl::memory in_a(of_a, engine, const_cast<half*>(a));
  const dnnl::memory in_b(of_b, engine, const_cast<half*>(b));
  const dnnl::memory out(of_c, engine, c);
  prepared(engine, of_a, of_b, of_c, p.adds)
      .execute(stream, {{DNNL_ARG_SRC, in_a}, {DNNL_ARG_WEIGHTS, in_b}, {DNNL_ARG_DST, out}});
  stream.wait();
}

#else

bool multiplies(DType type) { return type == DType::fp32; }

std::string multiplier_name(DType) { return "none: built without oneDNN"; }

void multiply(const Product&, const half*, const half*, DType, float*, int) {
  ensure(false, "the CPU multiplies matrices of the type");
}

#endif

}  // namespace tidegate::cpu
