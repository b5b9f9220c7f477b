#include "calib/cuda/shim/cublas_lt.hpp"

#include <vector>

#include <cublasLt.h>
#include <fmt/core.h>

#include "calib/cuda/shim/shared_library.hpp"
#include "models/base/error.hpp"

namespace tidegate::cuda {
namespace {

// What NVIDIA's cuBLAS documentation recommends as workspace for Hopper, and PyTorch takes there.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

struct Library {
  SharedLibrary library;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtGetStatusString) text = nullptr;
  decltype(&cublasLtMatmulDescCreate) make_description = nullptr;
  decltype(&cublasLtMatmulDescDestroy) free_description = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_description = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) make_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) free_layout = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) make_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) free_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;

  Library()
      : library({fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR),
                 fmt::format("/usr/local/cuda/lib64/libcublasLt.so.{}", CUBLAS_VER_MAJOR),
                 "libcublasLt.so.12"}) {
    library.find(create, {"cublasLtCreate"});
    library.find(destroy, {"cublasLtDestroy"});
    library.find(version, {"cublasLtGetVersion"});
    library.find(text, {"cublasLtGetStatusString"});
    library.find(make_description, {"cublasLtMatmulDescCreate"});
    library.find(free_description, {"cublasLtMatmulDescDestroy"});
    library.find(set_description, {"cublasLtMatmulDescSetAttribute"});
    library.find(make_layout, {"cublasLtMatrixLayoutCreate"});
    library.find(free_layout, {"cublasLtMatrixLayoutDestroy"});
    library.find(set_layout, {"cublasLtMatrixLayoutSetAttribute"});
    library.find(make_preference, {"cublasLtMatmulPreferenceCreate"});
    library.find(free_preference, {"cublasLtMatmulPreferenceDestroy"});
    library.find(set_preference, {"cublasLtMatmulPreferenceSetAttribute"});
    library.find(heuristic, {"cublasLtMatmulAlgoGetHeuristic"});
    library.find(matmul, {"cublasLtMatmul"});
  }

  void check(cublasStatus_t status, const char* call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw MachineError(
        fmt::format("{}: status {}: {}", call, static_cast<int>(status), text(status)));
  }
};

cudaDataType_t cuda_type(DType type) {
  switch (type) {
    case DType::fp32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::fp16:
      return CUDA_R_16F;
    case DType::fp8:
      return CUDA_R_8F_E4M3;
  }
  return CUDA_R_32F;
}

}  // namespace

std::string why_no_cublas_lt() { return Library().library.why_absent(); }

struct Matmul::State {
  Library lt;
  int device = 0;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;
  DeviceBuffer workspace;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms;

  ~State() {
    if (x != nullptr) lt.free_layout(x);
    if (w != nullptr) lt.free_layout(w);
    if (y != nullptr) lt.free_layout(y);
    if (description != nullptr) lt.free_description(description);
    if (handle != nullptr) lt.destroy(handle);
  }
  void describe(const Gemm& shape, Weights weights);
  void repeat(cublasLtMatrixLayout_t layout, std::int64_t count, std::int64_t each) const;
  void ask(const Gemm& shape, int most);
};

// cuBLASLt is column-major: there x is [k,m], w is [k,n] or [n,k], and y[n,m] = wᵀ · x or w · x.
void Matmul::State::describe(const Gemm& shape, Weights weights) {
  lt.check(lt.make_description(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
           "cublasLtMatmulDescCreate");
  const bool is_transposed = weights == Weights::by_outputs;
  const cublasOperation_t operation = is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  lt.check(
      lt.set_description(description, CUBLASLT_MATMUL_DESC_TRANSA, &operation, sizeof(operation)),
      "cublasLtMatmulDescSetAttribute");
  const auto type = cuda_type(shape.dtype);
  const auto m = static_cast<std::uint64_t>(shape.m);
  const auto n = static_cast<std::uint64_t>(shape.n);
  const auto k = static_cast<std::uint64_t>(shape.k);
  lt.check(is_transposed ? lt.make_layout(&w, type, k, n, shape.k)
                         : lt.make_layout(&w, type, n, k, shape.n),
           "cublasLtMatrixLayoutCreate");
  lt.check(lt.make_layout(&x, type, k, m, shape.k), "cublasLtMatrixLayoutCreate");
  lt.check(lt.make_layout(&y, cuda_type(result_type(shape.dtype)), n, m, shape.n),
           "cublasLtMatrixLayoutCreate");
  if (shape.batch == 1) return;
  repeat(w, shape.batch, shape.n * shape.k);
  repeat(x, shape.batch, shape.m * shape.k);
  repeat(y, shape.batch, shape.m * shape.n);
}

void Matmul::State::repeat(cublasLtMatrixLayout_t layout, std::int64_t count,
                           std::int64_t each) const {
  const auto batch = static_cast<std::int32_t>(count);
  lt.check(lt.set_layout(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)),
           "cublasLtMatrixLayoutSetAttribute");
  lt.check(lt.set_layout(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &each, sizeof(each)),
           "cublasLtMatrixLayoutSetAttribute");
}

void Matmul::State::ask(const Gemm& shape, int most) {
  cublasLtMatmulPreference_t preference = nullptr;
  lt.check(lt.make_preference(&preference), "cublasLtMatmulPreferenceCreate");
  lt.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                    sizeof(workspace_bytes));
  algorithms.resize(static_cast<std::size_t>(most));
  int found = 0;
  const cublasStatus_t status =
      lt.heuristic(handle, description, w, x, y, y, preference, most, algorithms.data(), &found);
  lt.free_preference(preference);
  algorithms.resize(static_cast<std::size_t>(found));
  std::erase_if(algorithms, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  if (status != CUBLAS_STATUS_SUCCESS || algorithms.empty()) {
    throw MachineError(fmt::format("cuBLASLt has no algorithm for {} {} x {} x {}: {}",
                                   name_of(shape.dtype), shape.m, shape.n, shape.k,
                                   lt.text(status)));
  }
}

Matmul::Matmul(int device, const Gemm& shape, int most, Weights weights)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  if (!s.lt.library.is_usable()) throw MachineError(s.lt.library.why_absent());
  const OnDevice here(device);
  s.device = device;
  s.lt.check(s.lt.create(&s.handle), "cublasLtCreate");
  s.workspace = DeviceBuffer(device, workspace_bytes);
  s.describe(shape, weights);
  s.ask(shape, most);
}
Matmul::~Matmul() = default;
Matmul::Matmul(Matmul&& other) noexcept = default;
Matmul& Matmul::operator=(Matmul&& other) noexcept = default;

int Matmul::algorithms() const { return static_cast<int>(state_->algorithms.size()); }
std::size_t Matmul::version() const { return state_->lt.version(); }

void Matmul::enqueue(const Stream& stream, int algorithm, const void* x, const void* w,
                     void* y) const {
  const State& s = *state_;
  const float one = 1, zero = 0;
  const auto& chosen = s.algorithms[static_cast<std::size_t>(algorithm)];
  s.lt.check(s.lt.matmul(s.handle, s.description, &one, w, s.w, x, s.x, &zero, y, s.y, y, s.y,
                         &chosen.algo, s.workspace.data(), workspace_bytes, stream.handle()),
             "cublasLtMatmul");
}

}  // namespace tidegate::cuda
