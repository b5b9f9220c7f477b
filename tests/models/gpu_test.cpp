#include "tests/catch.hpp"
#include "tests/models/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;

TEST_CASE("a large gemm takes its arithmetic over the peak", "[gpu]") {
  // 2 · 5000³ = 250 GFLOP at 1 TFLOP/s; 3 · 5000² · 2 B = 150 MB would take 1.5 ms.
  const Gpu gpu = toy::gpu();
  CHECK(gpu.alone(Gemm{5000, 5000, 5000}).value() == Approx(0.25));
  CHECK(gpu.memory_traffic(Gemm{5000, 5000, 5000}).value() == Approx(150e6));
  CHECK(gpu.alone(Gemm{5000, 5000, 5000, 1, DType::fp32}).value() == Approx(0.5));
}

TEST_CASE("a thin gemm takes its traffic over the memory bandwidth", "[gpu]") {
  // A 10000 x 10000 matrix times a vector: 200 MB at 100 GB/s = 2 ms; 0.2 GFLOP would take 0.2 ms.
  const Gemm thin{10000, 1, 10000};
  CHECK(toy::gpu().alone(thin).value() == Approx(0.002).epsilon(1e-3));
}

TEST_CASE("efficiency is read at the FLOPs of one kernel, and the launch is added", "[gpu]") {
  Gpu gpu = toy::gpu();
  gpu.gemm_efficiency = Curve({{1e9, 0.25}, {1e12, 0.5}});
  gpu.launch = 1_ms;
  // 0.25 TFLOP lies beyond neither end; at 1 TFLOP and above 0.5 holds: 2 TFLOP / 0.5 TFLOP/s = 4
  // s.
  CHECK(gpu.alone(Gemm{10000, 10000, 10000}).value() == Approx(4.001));
}

TEST_CASE("fp32 has curves of its own where a profile gives them", "[gpu]") {
  Gpu gpu = toy::gpu();
  gpu.gemm_efficiency_32 = Curve(0.25), gpu.attention_efficiency_32 = Curve(0.1);
  // 0.25 TFLOP at 0.5 TFLOP/s · 0.25 = 2 s in fp32; in bf16 as before at 1 TFLOP/s.
  CHECK(gpu.alone(Gemm{5000, 5000, 5000, 1, DType::fp32}).value() == Approx(2));
  CHECK(gpu.alone(Gemm{5000, 5000, 5000}).value() == Approx(0.25));
  // 2 GFLOP at 0.5 TFLOP/s · 0.1 = 40 ms in fp32, at 1 TFLOP/s 2 ms in bf16.
  Attention a{.heads = 10, .kv_heads = 10, .queries = 1000, .keys = 1000, .head_dim = 100};
  CHECK(gpu.alone(a).value() == Approx(2e-3));
  a.dtype = DType::fp32;
  CHECK(gpu.alone(a).value() == Approx(40e-3));
}

TEST_CASE("causal attention halves the arithmetic, backward costs two and a half times", "[gpu]") {
  // 4 · 1 · 10 · 1000 · 1000 · 100 = 4 GFLOP at 1 TFLOP/s = 4 ms.
  const Gpu gpu = toy::gpu();
  Attention a{.heads = 10, .kv_heads = 10, .queries = 1000, .keys = 1000, .head_dim = 100};
  a.causal = false;
  CHECK(gpu.alone(a).value() == Approx(4e-3));
  a.causal = true;
  CHECK(gpu.alone(a).value() == Approx(2e-3));
  a.backward = true;
  CHECK(gpu.alone(a).value() == Approx(5e-3));
  // q, k, v, o of 1e6 elements, 2 B each, twice in backward.
  CHECK(gpu.memory_traffic(a).value() == Approx(16e6));
}

TEST_CASE("grouped keys and values move less memory", "[gpu]") {
  // q and o 1e6 elements each, k and v 1e5 each: 2.2e6 · 2 B.
  const Attention a{.heads = 10, .kv_heads = 1, .queries = 1000, .keys = 1000, .head_dim = 100};
  CHECK(toy::gpu().memory_traffic(a).value() == Approx(4.4e6));
}

TEST_CASE("elementwise kernels pay a launch each and an efficiency of their own size", "[gpu]") {
  Gpu gpu = toy::gpu();
  gpu.memory_efficiency = Curve({{1e9, 0.5}, {1e10, 1}});
  gpu.launch = 1_ms;
  // 10 GB in 10 kernels of 1 GB: 10 / (100 · 0.5) + 10 · 1 ms.
  CHECK(gpu.alone(Elementwise{10_GB, 10}).value() == Approx(0.21));
  CHECK(gpu.alone(Elementwise{10_GB, 1}).value() == Approx(0.101));
}

TEST_CASE("fp8 runs at its own peak, or at the 16-bit peak where there is none", "[gpu]") {
  Gpu gpu = toy::gpu();
  CHECK(gpu.peak(DType::fp8) == 1_TFLOPs);
  gpu.peak_8 = 2_TFLOPs;
  CHECK(gpu.peak(DType::fp8) == 2_TFLOPs);
  CHECK(gpu.peak(DType::fp16) == gpu.peak(DType::bf16));
}

TEST_CASE("a kernel without work takes only its launch", "[gpu]") {
  CHECK(toy::gpu().alone(Gemm{0, 0, 5}) == 0_s);
  CHECK(toy::gpu().alone(Elementwise{0_B, 1}) == 0_s);
}
