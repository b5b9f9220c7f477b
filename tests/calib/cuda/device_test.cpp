#include <chrono>
#include <cmath>
#include <map>
#include <stdexcept>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/copy_buffers.hpp"
#include "calib/cuda/gate.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/shim/cublas_lt.hpp"
#include "calib/cuda/verify.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::cuda;

namespace {

GpuFacts first_gpu() { return gpu_facts().front(); }

// Ten empty kernels behind a gate: proof that the GPU still does what it is told.
bool still_works(const Stream& stream) {
  const std::vector<Lane> lanes{{&stream, 10, [&](int) { nothing(stream); }}};
  const Seconds time = time_behind_gate(lanes).front();
  return time > Seconds(0) && time < Seconds(1);
}

std::vector<std::byte> fetch(const void* from, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  copy_now(0, data.data(), from, bytes);
  return data;
}

}  // namespace

TEST_CASE("a GPU tells its facts", "[device]") {
  const GpuFacts gpu = first_gpu();
  CHECK_FALSE(gpu.name.empty());
  CHECK(gpu.memory > Bytes(1e9));
  CHECK(gpu.l2 > Bytes(0));
  CHECK(gpu.multiprocessors > 0);
  CHECK(gpu.sm_clock > 1e8);
  CHECK(gpu.bus_bits > 0);
}

TEST_CASE("the gate lets go what was queued", "[device]") {
  const Stream stream(0), other(0);
  CHECK(still_works(stream));
  const std::vector<Lane> lanes{{&stream, 10, [&](int) { nothing(stream); }},
                                {&other, 10, [&](int) { nothing(other); }}};
  CHECK(time_behind_gate(lanes).size() == 2);
}

TEST_CASE("the gate gives up on an operation that waits for the GPU", "[device]") {
  const Stream stream(0);
  const std::vector<Lane> lanes{{&stream, 1, [&](int) { stream.wait(); }}};
  GateOptions options;
  options.timeout = Seconds(0.2);
  CHECK_THROWS_WITH(time_behind_gate(lanes, options), Containing("opened by itself"));
  CHECK(still_works(stream));
}

TEST_CASE("an exception opens the gate", "[device]") {
  const Stream stream(0);
  const std::vector<Lane> lanes{{&stream, 1, [](int) { throw std::runtime_error("stop"); }}};
  GateOptions options;
  options.timeout = Seconds(30);
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(time_behind_gate(lanes, options), "stop");
  CHECK(still_works(stream));
  // Far less than the timeout: the guard opened it, not the kernel's patience.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
}

TEST_CASE("matrix products are the dot products of rows", "[device]") {
  const GpuFacts gpu = first_gpu();
  if (!why_no_cublas_lt().empty()) {
    WARN(why_no_cublas_lt());
    return;
  }
  constexpr std::size_t m = 64, n = 96, k = 512;
  std::vector<DType> types{DType::fp32, DType::bf16, DType::fp16};
  if (10 * gpu.major + gpu.minor >= 89) types.push_back(DType::fp8);
  const Stream stream(0);
  for (const DType type : types) {
    const auto each = static_cast<std::size_t>(bytes_per_element(type));
    const auto out = static_cast<std::size_t>(bytes_per_element(result_type(type)));
    const DeviceBuffer x(0, m * k * each), w(0, n * k * each), y(0, m * n * out);
    fill_uniform(stream, x.data(), type, m * k, 1);
    fill_uniform(stream, w.data(), type, n * k, 2);
    const Matmul matmul(0, {m, n, k, 1, type}, 8);
    for (int a = 0; a < matmul.algorithms(); ++a) {
      set_bytes(stream, y.data(), 0xFF, y.size());
      matmul.enqueue(stream, a, x.data(), w.data(), y.data());
      stream.wait();
      const auto result = fetch(y.data(), y.size());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < m; ++i) {
        const auto row = fetch(x.data() + i * k * each, k * each);
        for (std::size_t j = 0; j < n; j += 7) {
          const Dot exact = dot(row, fetch(w.data() + j * k * each, k * each), type);
          const double value = decode(result, result_type(type), i * n + j);
          if (!agrees(value, exact, type, result_type(type))) ++wrong;
        }
      }
      INFO(name_of(type) << ", algorithm " << a);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("copies arrive, and what did not arrive is noticed", "[device]") {
  Station station(first_gpu());
  constexpr std::size_t bytes = 1 << 20;
  for (const HostMemory memory : {HostMemory::pinned, HostMemory::pageable}) {
    CopyBuffers buffers(station, 4 * bytes, memory, 3);
    for (const Way way : {Way::h2d, Way::d2h}) {
      buffers.wipe(station, way, bytes);
      CHECK_FALSE(buffers.has_arrived(station, way, bytes, 1));
      for (int i = 0; i < 3; ++i) copy_once(station.stream(), buffers, way, bytes, i);
      station.stream().wait();
      CHECK(buffers.has_arrived(station, way, bytes, 3));
      CHECK_FALSE(buffers.has_arrived(station, way, bytes, 4));  // the fourth place is empty
    }
  }
}

TEST_CASE("threads copy as engines do", "[device]") {
  Station station(first_gpu());
  constexpr std::size_t bytes = 1 << 20;
  CopyBuffers buffers(station, bytes, HostMemory::pinned, 4);
  for (const Way way : {Way::h2d, Way::d2h}) {
    buffers.wipe(station, way, bytes);
    const OnDevice here(0);
    copy_by_threads(station.stream(), buffers.target(way, 0), buffers.source(way, 0), bytes, 8);
    station.stream().wait();
    CHECK(buffers.has_arrived(station, way, bytes, 1));
  }
}

TEST_CASE("each benchmark that can run measures something true", "[device][bench]") {
  calib::Setup setup;
  setup.effort = calib::Effort::quick;
  for (const calib::BenchEntry& entry : bench_table()) {
    if (const std::string reason = entry.why_not(setup); !reason.empty()) {
      WARN(entry.name << ": " << reason);
      continue;
    }
    const auto bench = entry.make(setup);
    const auto rows = bench->rows();
    REQUIRE_FALSE(rows.empty());
    bench->prepare();
    // Three rows of each quantity, from small to large.
    std::map<std::string, std::vector<std::size_t>> by_quantity;
    for (std::size_t i = 0; i < rows.size(); ++i) by_quantity[rows[i].quantity].push_back(i);
    for (const auto& [quantity, all] : by_quantity) {
      for (const std::size_t i : {all.front(), all[all.size() / 2], all.back()}) {
        const calib::Sample sample = bench->sample(i);
        INFO(quantity << ", row " << i << ": " << sample.value << " " << sample.spoiled);
        CHECK(sample.is_verified);
        CHECK((std::isfinite(sample.value) && sample.value > 0));
        if (rows[i].ceiling > 0) CHECK(sample.value <= rows[i].ceiling);
      }
    }
    bench->finish();
  }
}
