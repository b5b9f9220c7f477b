// Holds every file under hw_profiles/ against what the loader and the models promise.
#include <cmath>
#include <filesystem>

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
  // Product brief: 6.2 GB/s a drive. Four write 24.8 GB/s, three 18.6, each alone below the 25 GB/s
  // of its link; 48 threads with 1 MiB each keep them busy to 0.5 %.
  const auto rate = [&m](std::uint16_t rank) {
    const FileIo io{Direction::write, rank, {Tier::gpu, rank}, 100_GB, Bytes(1 << 20), 6, 8};
    return 100e9 / m.demand(io).alone.value();
  };
  CHECK(m.paths()[0].name == "array4");
  CHECK(rate(0) == Approx(24.8e9).epsilon(6e-3));
  CHECK(rate(1) == Approx(18.6e9).epsilon(6e-3));
}

TEST_CASE("consumer GPUs are not reached by drives", "[profiles]") {
  CHECK_FALSE(load_machine((dir / "workstation_rtx4090.yaml").string()).paths()[0].gpudirect);
  CHECK(load_machine((dir / "h200_8gpu.yaml").string()).paths()[0].gpudirect);
}
