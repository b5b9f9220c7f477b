// Holds every file under hw_profiles/ against what the loader and the models promise.
#include <cmath>
#include <filesystem>
#include <span>
#include <utility>

#include "models/profile.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::literals;
namespace fs = std::filesystem;

namespace {

const fs::path dir = fs::path(TIDEGATE_SOURCE_DIR) / "hw_profiles";

std::vector<fs::path> files(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  return found;
}

std::vector<Work> one_of_each(const Machine& m) {
  const Place gpu{Tier::gpu, 0}, host{Tier::host, 0};
  const auto gpus = static_cast<std::uint16_t>(m.gpu_count());
  std::vector<Work> works = {
      Delay{1_s},
      Compute{
          0,
          {Gemm{4096, 4096, 4096}, Elementwise{1_GB, 10},
           Attention{.heads = 32, .kv_heads = 8, .queries = 4096, .keys = 4096, .head_dim = 128}}},
      Copy{host, gpu, 1_GB},
      Copy{gpu, host, 1_MB, Pinning::pageable},
      Copy{host, host, 1_GB},
      AdamStep{0, 100'000'000},
      Cast{0, 100'000'000}};
  for (std::uint16_t path = 0; path < m.paths().size(); ++path) {
    works.push_back(FileIo{Direction::read, path, host, 1_GB});
    works.push_back(FileIo{Direction::write, path, m.paths()[path].gpudirect ? gpu : host, 1_GB});
  }
  if (gpus > 1) {
    works.push_back(Collective{CollectiveKind::all_gather, 1_GB, gpus, 0, gpus});
    works.push_back(Copy{gpu, {Tier::gpu, 1}, 1_GB});
  }
  return works;
}

void check(const Machine& m) {
  for (const Provenance& p : m.provenance()) {
    INFO(p.key);
    CHECK_FALSE(p.value.empty());
    CHECK_FALSE(p.source.empty());
  }
  for (const Work& work : one_of_each(m)) {
    INFO(to_text(work));
    const Demand d = m.demand(work);
    const double seconds = (d.latency + d.alone).value();
    CHECK(seconds > 0);
    CHECK(std::isfinite(seconds));
  }
}

}  // namespace

TEST_CASE("every node profile loads, cites its values and prices every kind of work",
          "[profiles]") {
  for (const fs::path& file : files(dir)) {
    INFO(file);
    check(load_machine(file.string()));
  }
}

TEST_CASE("every component fits into a node", "[profiles]") {
  const std::string node = (dir / "h200_8gpu.yaml").string();
  for (const fs::path& file : files(dir / "components")) {
    INFO(file);
    const yaml::Value component = yaml::load_file(file.string());
    REQUIRE(component.find("kind") != nullptr);
    const bool is_gpu = component.find("kind")->text == "gpu";
    check(
        load_machine(node, {{is_gpu ? "gpus.component" : "paths.nvme.component", file.string()}}));
  }
}

TEST_CASE("the published node has its measured rates", "[profiles]") {
  const Machine m = load_machine((dir / "h100_4gpu_nvme_pfs.yaml").string());
  REQUIRE(m.paths().size() == 2);
  CHECK(m.paths()[0].name == "nvme");
  CHECK(m.paths()[1].is_shared);
  CHECK(m.gpu(3).d2h == 54.5_GBps);
  // Two ranks a socket: 3.54 Gparam/s each when both update (machine_test.cpp).
  const Demand adam = m.demand(AdamStep{0, 6'150'000'000});
  CHECK(adam.alone.value() == Approx(1));
  // Gathers of the forward pass: 200 GB/s of bus bandwidth, (n-1)/n of the bytes through each GPU.
  const Demand gather = m.demand(Collective{CollectiveKind::all_gather, 800_GB, 4, 0, 4});
  CHECK(gather.alone.value() == Approx(3));
}

TEST_CASE("the node of SSDTrain writes from GPU memory to an array of each rank", "[profiles]") {
  const Machine m = load_machine((dir / "a100_2gpu_optane.yaml").string());
  REQUIRE(m.gpu_count() == 2);
  REQUIRE(m.paths().size() == 2);
  CHECK(m.numa_of_rank(1) == 1);
  // The profile takes 4 GB/s a drive. Four write 16 GB/s, three 12, each alone below the 25 GB/s of
  // its link; 48 threads with 1 MiB each keep them busy to 0.5 %.
  const auto rate = [&m](std::uint16_t rank) {
    const FileIo io{Direction::write, rank, {Tier::gpu, rank}, 100_GB, Bytes(1 << 20), 6, 8};
    return 100e9 / m.demand(io).alone.value();
  };
  CHECK(m.paths()[0].name == "array4");
  CHECK(rate(0) == Approx(16e9).epsilon(6e-3));
  CHECK(rate(1) == Approx(12e9).epsilon(6e-3));
}

TEST_CASE("consumer GPUs are not reached by drives", "[profiles]") {
  CHECK_FALSE(load_machine((dir / "workstation_rtx4090.yaml").string()).paths()[0].gpudirect);
  CHECK(load_machine((dir / "h200_8gpu.yaml").string()).paths()[0].gpudirect);
}

namespace {

struct MeasuredGemm {
  std::int64_t tokens, out, in;
  double milliseconds;
};

// github.com/microsoft/vidur, data/profiling/compute/a100: medians of the projections of one of
// four tensor-parallel ranks. The profile's fit saw none of them.
constexpr MeasuredGemm qwen_72b[] = {
    {4000, 6144, 8192, 1.829},  {4000, 8192, 2048, 0.724},  {4000, 12288, 8192, 3.424},
    {4000, 8192, 6144, 1.730},  {3840, 6144, 8192, 1.736},  {3840, 8192, 2048, 0.693},
    {3840, 12288, 8192, 3.260}, {3840, 8192, 6144, 1.592},  {3456, 6144, 8192, 1.628},
    {3456, 8192, 2048, 0.521},  {3456, 12288, 8192, 2.849}, {3456, 8192, 6144, 1.436}};
constexpr MeasuredGemm llama2_7b[] = {{4096, 3072, 4096, 0.415}, {4096, 4096, 1024, 0.151},
                                      {4096, 5504, 4096, 0.779}, {4096, 4096, 2752, 0.392},
                                      {3840, 3072, 4096, 0.428}, {3840, 4096, 1024, 0.151},
                                      {3840, 5504, 4096, 0.772}, {3840, 4096, 2752, 0.360}};

struct Errors {
  double bias = 0, spread = 0;  ///< mean and standard deviation of ln(predicted / measured)
};
Errors errors_of(const Gpu& gpu, std::span<const MeasuredGemm> measured) {
  double sum = 0, squares = 0;
  for (const MeasuredGemm& g : measured) {
    const Gemm gemm{g.tokens, g.out, g.in, 1, DType::fp16};
    const double kernel = (gpu.alone(gemm) - gpu.launch).value() * 1e3;
    const double error = std::log(kernel / g.milliseconds);
    sum += error;
    squares += error * error;
  }
  const auto n = static_cast<double>(measured.size());
  return {sum / n, std::sqrt(squares / n - sum * sum / (n * n))};
}

}  // namespace

TEST_CASE("the A100 prices GEMMs that did not set its curve", "[profiles]") {
  const Machine m = load_machine((dir / "a100_8gpu.yaml").string());
  for (const Errors e : {errors_of(m.gpu(0), qwen_72b), errors_of(m.gpu(0), llama2_7b)}) {
    CHECK(std::abs(e.bias) < 0.06);  // the profile's own uncertainty
    CHECK(e.spread < 0.1);           // tiles and waves, which the model leaves out
  }
}

TEST_CASE("eight A100 all-reduce as fast as a DGX A100 was measured", "[profiles]") {
  // github.com/microsoft/vidur, data/profiling/network/a100_dgx/all_reduce.csv, eight ranks.
  const Machine m = load_machine((dir / "a100_8gpu.yaml").string());
  constexpr std::pair<double, double> measured[] = {
      {2097152, 70e-6},   {4063232, 96e-6},   {8388608, 154e-6},  {10485760, 179e-6},
      {43778048, 469e-6}, {50331648, 516e-6}, {54001664, 603e-6}, {65536000, 662e-6}};
  for (const auto& [bytes, seconds] : measured) {
    const Demand d = m.demand(Collective{CollectiveKind::all_reduce, Bytes(bytes), 8, 0, 8});
    INFO(bytes);
    CHECK((d.latency + d.alone).value() == Approx(seconds).epsilon(0.08));
  }
}
