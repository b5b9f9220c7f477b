#include <sstream>
#include <string>

#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "validate/gpu_times/trace.hpp"

/// Traces in the form that torch.profiler's export_chrome_trace writes (Kineto): complete events
/// with cat, name, ts and dur in microseconds, kernels tied to their launch by args.correlation.

using namespace tidegate;

namespace {

std::string event(const std::string& kind, const std::string& name, double at, double duration,
                  int thread, const std::string& arguments = "") {
  std::ostringstream out;
  out << R"({"ph": "X", "cat": ")" << kind << R"(", "name": ")" << name << R"(", "pid": 1, "tid": )"
      << thread << R"(, "ts": )" << at << R"(, "dur": )" << duration << R"(, "args": {)"
      << arguments << "}},\n";
  return out.str();
}

// A kernel of `duration`, launched at `at` on `thread`, that runs 1000 us later.
std::string kernel(const std::string& name, double at, double duration, int thread, int number) {
  const std::string correlation = "\"correlation\": " + std::to_string(number);
  return event("cuda_runtime", "cudaLaunchKernel", at, 1, thread, correlation) +
         event("kernel", name, at + 1000, duration, 7, correlation + ", \"device\": 0");
}

std::string trace(std::string events) {
  events.erase(events.rfind(','));
  return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100"}], "traceEvents": [)" +
         events + "\n], \"traceName\": \"t\"}";
}

TraceEvents read(const std::string& text) {
  std::istringstream in(text);
  return read_trace(in, "trace.json");
}

std::string error_of(const std::string& text) {
  try {
    steps_of(read(text), "trace.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

double us(const ClassTimes& times, Phase phase, KernelClass kind) {
  return 1e6 * times[static_cast<std::size_t>(phase)][static_cast<std::size_t>(kind)];
}

}  // namespace

TEST_CASE("kernels are classed by their names", "[gpu_times]") {
  // cuBLAS on Ampere and Hopper, FlashAttention 2, cuDNN's and PyTorch's attention, NCCL, PyTorch.
  CHECK(class_of_kernel("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn") ==
        KernelClass::matrix_product);
  CHECK(class_of_kernel("nvjet_tst_128x256_64x4_1x2_h_bz_TNT") == KernelClass::matrix_product);
  CHECK(class_of_kernel("void cublasLt::splitKreduce_kernel<32, 16, int>()") ==
        KernelClass::matrix_product);
  CHECK(class_of_kernel("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<>()") ==
        KernelClass::attention);
  CHECK(class_of_kernel("fmha_cutlassF_bf16_aligned_64x64_rf_sm80") == KernelClass::attention);
  CHECK(class_of_kernel("cudnn_generated_fort_native_sdpa_sm90_flash_fprop") ==
        KernelClass::attention);
  CHECK(class_of_kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL()") == KernelClass::collective);
  CHECK(class_of_kernel("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add>()") ==
        KernelClass::elementwise);
}

TEST_CASE("a kernel counts for the step and phase of its launch", "[gpu_times]") {
  // Thread 1 is Python's, thread 2 autograd's. The first kernel runs beyond the end of its step.
  const TracedSteps steps = steps_of(
      read(trace(event("user_annotation", "ProfilerStep#3", 0, 500, 1) +
                 event("user_annotation", "ProfilerStep#4", 500, 500, 1) +
                 event("gpu_user_annotation", "ProfilerStep#3", 1000, 900, 7) +
                 event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 100, 50, 2) +
                 event("user_annotation", "Optimizer.step#AdamW.step", 300, 50, 1) +
                 event("user_annotation", "Optimizer.step#AdamW.step", 800, 50, 1) +
                 kernel("sm80_gemm", 10, 40, 1, 1) + kernel("sm80_gemm", 110, 80, 2, 2) +
                 kernel("vectorized_elementwise_kernel", 310, 5, 1, 3) +
                 kernel("flash_fwd_kernel", 510, 30, 1, 4) +
                 event("gpu_memcpy", "Memcpy HtoD", 20, 7, 7, "\"device\": 0"))),
      "trace.json");
  REQUIRE(steps.steps.size() == 2);
  CHECK(us(steps.steps[0], Phase::forward, KernelClass::matrix_product) == Approx(40));
  CHECK(us(steps.steps[0], Phase::backward, KernelClass::matrix_product) == Approx(80));
  CHECK(us(steps.steps[0], Phase::update, KernelClass::elementwise) == Approx(5));
  CHECK(us(steps.steps[1], Phase::forward, KernelClass::attention) == Approx(30));
  // It has no launch: its own time decides, and its phase is not known.
  CHECK(us(steps.steps[0], Phase::other, KernelClass::copy) == Approx(7));
  CHECK(steps.kernels == 5);
  CHECK(steps.has_phases);
}

TEST_CASE("profiler steps without an optimizer step are parts of the next that has one",
          "[gpu_times]") {
  // Steps 0 to 4, updates in 0, 2 and 4: what began before the trace (0) is not whole.
  std::string events;
  for (int i = 0; i < 5; ++i) {
    events += event("user_annotation", "ProfilerStep#" + std::to_string(i), 100 * i, 100, 1) +
              kernel("gemm", 100 * i + 10, 10, 1, i);
    if (i % 2 == 0)
      events += event("user_annotation", "Optimizer.step#AdamW.step", 100 * i + 50, 9, 1);
  }
  const TracedSteps steps = steps_of(read(trace(events)), "trace.json");
  REQUIRE(steps.steps.size() == 2);
  CHECK(steps.profiler_steps == 5);
  CHECK(us(steps.steps[0], Phase::forward, KernelClass::matrix_product) == Approx(20));
}

TEST_CASE("of several GPUs the busiest counts", "[gpu_times]") {
  const std::string second = event("kernel", "gemm", 5, 3, 7, "\"device\": 1");
  const TracedSteps steps =
      steps_of(read(trace(event("user_annotation", "ProfilerStep#0", 0, 100, 1) +
                          event("kernel", "gemm", 1, 50, 7, "\"device\": 0") + second + second)),
               "trace.json");
  CHECK(steps.device == 1);
  CHECK(steps.devices == 2);
  CHECK(total_of(steps.steps.at(0), KernelClass::matrix_product) == Approx(6e-6));
  CHECK_FALSE(steps.has_phases);
}

TEST_CASE("a trace that says nothing about kernels or steps says what it lacks", "[gpu_times]") {
  const std::string step = event("user_annotation", "ProfilerStep#0", 0, 100, 1);
  CHECK_THAT(error_of(trace(step)), Containing("has no GPU kernels"));
  CHECK_THAT(error_of(trace(kernel("gemm", 1, 1, 1, 1))), Containing("call prof.step()"));
  CHECK_THAT(error_of(trace(step + kernel("gemm", 200, 1, 1, 1))),
             Containing("none within its ProfilerStep ranges"));
  CHECK_THAT(error_of("{\"a\": []}"), Containing("traceEvents: is missing"));
  CHECK_THAT(error_of("\x1f\x8b"), Containing("gunzip"));
}

TEST_CASE("text that ends in the middle is an error with its place", "[gpu_times]") {
  const std::string whole = trace(event("user_annotation", "ProfilerStep#0", 0, 100, 1));
  // The second line begins behind the event's newline; of it "\n], ..." four characters are kept.
  const std::string cut = whole.substr(0, whole.find('\n') + 1) + "  nu";
  CHECK_THAT(error_of(cut), Containing("trace.json:2:"));
  CHECK_THAT(error_of(cut), Containing("export_chrome_trace"));
}

TEST_CASE("events may stand in a bare list, and nested numbers are not theirs", "[gpu_times]") {
  const TraceEvents events = read(
      R"([{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2, "tid": 7,
           "args": {"correlation": 5, "grid": [9, 9, 9], "more": {"dur": 100, "device": 3}}}])");
  REQUIRE(events.kernels.size() == 1);
  CHECK(events.kernels[0].duration == 2);
  CHECK(events.kernels[0].correlation == 5);
  CHECK(events.kernels[0].device == 0);
}
