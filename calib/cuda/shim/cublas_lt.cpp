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
std::size_t cublas_lt_version() { return Library().version(); }

struct Matmul::State {
  Library lt;
  int device = 0;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t w = nullptr, x = nullptr, y = nullptr;
  bool adds = false;
  DeviceBuffer workspace;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms;

  ~State() {
    if (x != nullptr) lt.free_layout(x);
    if (w != nullptr) lt.free_layout(w);
    if (y != nullptr) lt.free_layout(y);
    if (description != nullptr) lt.free_description(description);
    if (handle != nullptr) lt.destroy(handle);
  }
  void describe(const Product& product);
  void transpose(cublasLtMatmulDescAttributes_t which, bool is_transposed) const;
  cublasLtMatrixLayout_t layout(const ColumnLayout& matrix, DType type, std::int64_t batch) const;
  void ask(const Product& product, int most);
};

void Matmul::State::describe(const Product& product) {
  lt.check(lt.make_description(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
           "cublasLtMatmulDescCreate");
  const ColumnProduct columns = by_columns(product);
  transpose(CUBLASLT_MATMUL_DESC_TRANSA, columns.b.is_transposed);
  transpose(CUBLASLT_MATMUL_DESC_TRANSB, columns.a.is_transposed);
  w = layout(columns.b, product.operands, product.batch);
  x = layout(columns.a, product.operands, product.batch);
  y = layout(columns.c, product.result, product.batch);
  adds = product.adds;
}

void Matmul::State::transpose(cublasLtMatmulDescAttributes_t which, bool is_transposed) const {
  const cublasOperation_t operation = is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  lt.check(lt.set_description(description, which, &operation, sizeof(operation)),
           "cublasLtMatmulDescSetAttribute");
}

cublasLtMatrixLayout_t Matmul::State::layout(const ColumnLayout& matrix, DType type,
                                             std::int64_t batch) const {
  cublasLtMatrixLayout_t made = nullptr;
  lt.check(lt.make_layout(&made, cuda_type(type), static_cast<std::uint64_t>(matrix.rows),
                          static_cast<std::uint64_t>(matrix.columns), matrix.leading),
           "cublasLtMatrixLayoutCreate");
  if (batch == 1) return made;
  const auto count = static_cast<std::int32_t>(batch);
  const std::int64_t each = matrix.rows * matrix.columns;
  lt.check(lt.set_layout(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
           "cublasLtMatrixLayoutSetAttribute");
  lt.check(lt.set_layout(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &each, sizeof(each)),
           "cublasLtMatrixLayoutSetAttribute");
  return made;
}

void Matmul::State::ask(const Product& product, int most) {
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
                                   name_of(product.operands), product.m, product.n, product.k,
                                   lt.text(status)));
  }
}

Matmul::Matmul(int device, const Gemm& shape, int most, Weights weights)
    : Matmul(device,
             Product{.m = shape.m,
                     .n = shape.n,
                     .k = shape.k,
                     .batch = shape.batch,
                     .b_is_transposed = weights == Weights::by_outputs,
                     .operands = shape.dtype,
                     .result = result_type(shape.dtype)},
             most) {}

Matmul::Matmul(int device, const Product& product, int most) : state_(std::make_unique<State>()) {
  State& s = *state_;
  if (!s.lt.library.is_usable()) throw MachineError(s.lt.library.why_absent());
  const OnDevice here(device);
  s.device = device;
  s.lt.check(s.lt.create(&s.handle), "cublasLtCreate");
  s.workspace = DeviceBuffer(device, workspace_bytes);
  s.describe(product);
  s.ask(product, most);
}
Matmul::~Matmul() = default;
Matmul::Matmul(Matmul&& other) noexcept = default;
Matmul& Matmul::operator=(Matmul&& other) noexcept = default;

int Matmul::algorithms() const { return static_cast<int>(state_->algorithms.size()); }
std::size_t Matmul::version() const { return state_->lt.version(); }

void Matmul::enqueue(const Stream& stream, int algorithm, const void* x, const void* w,
                     void* y) const {
  const State& s = *state_;
  const float one = 1, kept = s.adds ? 1 : 0;
  const auto& chosen = s.algorithms[static_cast<std::size_t>(algorithm)];
  s.lt.check(s.lt.matmul(s.handle, s.description, &one, w, s.w, x, s.x, &kept, y, s.y, y, s.y,
                         &chosen.algo, s.workspace.data(), workspace_bytes, stream.handle()),
             "cublasLtMatmul");
}

}  // namespace tidegate::cuda
