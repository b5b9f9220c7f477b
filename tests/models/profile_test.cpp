#include "models/profile.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::literals;
namespace fs = std::filesystem;

namespace {

constexpr const char* gpu_text = R"(kind: gpu
name: toy GPU
memory: {value: 80 GiB, source: "datasheet"}
context: {value: 1 GiB, assumed: "a guess"}
peak_16: {value: 100 TFLOP/s, source: "datasheet", uncertainty: 5 %}
peak_32: {value: 50 TFLOP/s, source: "datasheet"}
memory_bandwidth: {value: 1 TB/s, source: "datasheet"}
gemm_efficiency: {points: [[1 GFLOP, 0.2], [1 TFLOP, 0.6]], source: "calib gemm"}
attention_efficiency: {value: 0.5, assumed: "a guess"}
memory_efficiency: {value: 0.9, assumed: "a guess"}
launch: {value: 5 us, assumed: "a guess"}
h2d: {value: 20 GB/s, source: "calib copy"}
d2h: {value: 22 GB/s, source: "calib copy"}
copy_half_size: {value: 256 KiB, assumed: "a guess"}
pageable_factor: {value: 0.3, assumed: "a guess"}
)";

constexpr const char* drive_text = R"(kind: drive
name: toy drive
capacity: {value: 1 TB, source: "datasheet"}
read: {value: 6 GB/s, source: "datasheet"}
write: {value: 4 GB/s, source: "datasheet"}
latency: {value: 80 us, assumed: "a guess"}
block_half_size: {value: 512 KiB, assumed: "a guess"}
endurance: {value: 2 PB, source: "datasheet"}
cache: {value: 100 GB, source: "a review"}
write_sustained: {value: 1 GB/s, source: "a review"}
cache_recovery: {value: 1 GB/s, assumed: "a guess"}
)";

constexpr const char* node_text = R"(kind: node
name: toy
gpus:
  count: 2
  component: gpu.yaml
  h2d: {value: 25 GB/s, source: "measured here"}
host:
  numa_nodes: {value: 1, source: "lscpu"}
  cores: {value: 32, source: "lscpu"}
  memory: {value: 256 GiB, source: "lscpu"}
  memory_bandwidth: {value: 150 GB/s, source: "calib stream"}
  adam_rate: {value: 4e9, source: "calib adam"}
  cast_rate: {value: 5e9, source: "calib cast"}
  copy_rate: {value: 10 GB/s, source: "calib memcpy"}
  base_use: {value: 8 GiB, assumed: "a guess"}
  roots:
    plx0: {gpus: [0, 1], h2d: {value: 25 GB/s, source: "calib copy"}, d2h: {value: 25 GB/s, source: "calib copy"}}
fabric:
  per_gpu: {value: 200 GB/s, source: "nccl-tests"}
  latency: {value: 30 us, source: "nccl-tests"}
paths:
  nvme: {count: 2, component: drive.yaml}
)";

/// A folder with the toy node and its components; `edit` replaces text in one of the files.
class Folder {
 public:
  Folder() : dir_(fs::temp_directory_path() / ("tidegate_profile_" + std::to_string(counter_++))) {
    fs::create_directories(dir_);
    write("node.yaml", node_text);
    write("gpu.yaml", gpu_text);
    write("drive.yaml", drive_text);
  }
  ~Folder() { fs::remove_all(dir_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string node() const { return (dir_ / "node.yaml").string(); }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(dir_ / file) << text;
  }
  void edit(const std::string& file, const std::string& from, const std::string& to) const {
    std::ifstream in(dir_ / file);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    write(file, text.replace(at, from.size(), to));
  }

 private:
  static inline int counter_ = 0;
  fs::path dir_;
};

/// All problems of loading, one per line, without the folder.
std::string faults(const Folder& folder,
                   const std::vector<std::pair<std::string, std::string>>& overrides = {}) {
  try {
    load_machine(folder.node(), overrides);
  } catch (const InputError& error) {
    std::string text;
    for (const Problem& p : error.problems()) {
      text += fs::path(p.where.file).filename().string() + ":" + std::to_string(p.where.line) +
              ": " + p.key + ": " + p.text + "\n";
    }
    return text;
  }
  return "none";
}

std::string faults_after(const std::string& file, const std::string& from, const std::string& to) {
  const Folder folder;
  folder.edit(file, from, to);
  return faults(folder);
}

const Provenance& origin(const Machine& machine, const std::string& key) {
  const auto all = machine.provenance();
  const auto found = std::ranges::find(all, key, &Provenance::key);
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("a node takes its components' values and replaces those that it gives", "[profile]") {
  const Folder folder;
  const Machine m = load_machine(folder.node());
  CHECK(m.name() == "toy");
  CHECK(m.gpu_count() == 2);
  CHECK(m.gpu(1).name == "toy GPU");
  CHECK(m.gpu(1).h2d == 25_GBps);
  CHECK(m.gpu(1).d2h == 22_GBps);
  CHECK(m.gpu(0).root == 0);
  CHECK(m.gpu(0).gemm_efficiency.at(1e12) == 0.6);
  CHECK(m.host().ranks_per_numa == 2);
  CHECK(m.fabric().per_gpu == 200_GBps);
  CHECK(m.fabric().efficiency.at(1e6) == 1);
}

TEST_CASE("fp32 products have the curve of 16 bits unless they are given their own", "[profile]") {
  const Folder folder;
  CHECK(load_machine(folder.node()).gpu(0).gemm_efficiency_32.empty());
  const std::string own = "{points: [[1 GFLOP, 0.5], [1 TFLOP, 0.9]], assumed: a guess}";
  const Machine m = load_machine(
      folder.node(), {{"gpus.gemm_efficiency_32", own}, {"gpus.attention_efficiency_32", "0.3"}});
  CHECK(m.gpu(0).gemm_efficiency_32.at(1e9) == 0.5);
  CHECK(m.gpu(0).gemm_efficiency.at(1e9) == 0.2);
  CHECK(m.gpu(0).attention_efficiency_32.at(1e9) == 0.3);
}

TEST_CASE("a fabric may say what small collectives reach", "[profile]") {
  const Folder folder;
  folder.edit("node.yaml", "fabric:\n",
              "fabric:\n  efficiency: {points: [[1 MB, 0.2], [1 GB, 0.9]], source: nccl-tests}\n");
  const Machine m = load_machine(folder.node());
  CHECK(m.fabric().efficiency.at(1e6) == 0.2);
  CHECK(m.fabric().efficiency.at(2e9) == 0.9);
  CHECK(origin(m, "fabric.efficiency").source == "nccl-tests");
}

TEST_CASE("striped drives add up", "[profile]") {
  const Folder folder;
  const Machine machine = load_machine(folder.node());
  const StoragePath& path = machine.paths()[0];
  CHECK(path.name == "nvme");
  CHECK(path.capacity == 2000_GB);
  CHECK(path.read == 12_GBps);
  CHECK(path.write == 8_GBps);
  CHECK(path.write_mixed == 8_GBps);
  CHECK(path.write_sustained == 2_GBps);
  CHECK(path.cache == 200_GB);
  CHECK(path.endurance_bytes == 4e15);
  CHECK(path.warranty_years == 5);  // years do not add up
  CHECK(origin(machine, "paths.nvme.warranty").assumed);
  CHECK(path.block_half_size.value() == 1048576);
}

TEST_CASE("every value keeps its origin", "[profile]") {
  const Folder folder;
  const Machine m = load_machine(folder.node());
  CHECK(origin(m, "gpus.peak_16").value == "100 TFLOP/s");
  CHECK(origin(m, "gpus.peak_16").uncertainty == Approx(0.05));
  CHECK_FALSE(origin(m, "gpus.peak_16").assumed);
  CHECK(origin(m, "gpus.h2d").source == "measured here");
  CHECK(origin(m, "gpus.context").assumed);
  CHECK(origin(m, "gpus.gemm_efficiency").value == "[[1 GFLOP, 0.2], [1 TFLOP, 0.6]]");
  CHECK(origin(m, "host.roots.plx0.h2d").source == "calib copy");
  CHECK(origin(m, "paths.nvme.read").value == "6 GB/s");
  CHECK_THAT(origin(m, "paths.nvme.read_mixed").source, Containing("not given"));
}

TEST_CASE("an override replaces a value, whichever file it is in", "[profile]") {
  const Folder folder;
  const Machine m = load_machine(folder.node(), {{"gpus.count", "1"},
                                                 {"host.roots.plx0.gpus", "[0]"},
                                                 {"paths.nvme.read", "7 GB/s"},
                                                 {"host.adam_rate.value", "3e9"}});
  CHECK(m.gpu_count() == 1);
  CHECK(m.paths()[0].read == 14_GBps);
  CHECK(m.host().adam_rate == 3e9);
  CHECK(origin(m, "paths.nvme.read").assumed);
  CHECK(origin(m, "host.adam_rate").assumed);
  CHECK_THAT(faults(folder, {{"gpus.count", "0"}}),
             Containing("override:0: gpus.count: is 0; it must lie between 1 and 8"));
  CHECK_THAT(faults(folder, {{"paths.nvme.raed", "7 GB/s"}}), Containing("did you mean 'read'?"));
}

TEST_CASE("an override of a path that is not there names those that are", "[profile][faults]") {
  const Folder folder;
  CHECK_THAT(faults(folder, {{"paths.nvm.count", "1"}}),
             Containing("override:0: paths.nvm: is no storage path of the profile, which has nvme "
                        "(did you mean 'nvme'?)"));
  // A new one whole is one; then its keys are there.
  const std::string drive = "{count: 1, component: drive.yaml}";
  CHECK(load_machine(folder.node(), {{"paths.nvm", drive}}).paths().size() == 2);
  CHECK(load_machine(folder.node(), {{"paths.nvm", drive}, {"paths.nvm.count", "2"}})
            .paths()[1]
            .read == load_machine(folder.node()).paths()[0].read);
}

TEST_CASE("a mixed rate that stays when the pure one is set is told as doubtful", "[profile]") {
  const Folder folder;
  folder.edit("drive.yaml", "read:", "read_mixed: {value: 3 GB/s, source: \"fio\"}\nread:");
  const auto told = [&](const std::vector<std::pair<std::string, std::string>>& overrides) {
    return origin(load_machine(folder.node(), overrides), "paths.nvme.read_mixed");
  };
  CHECK(told({}).source == "fio");
  CHECK(told({{"paths.nvme.read", "14 GB/s"}}).assumed);
  CHECK_THAT(told({{"paths.nvme.read", "14 GB/s"}}).source, Containing("set it too"));
  CHECK(told({{"paths.nvme.read.value", "14 GB/s"}}).assumed);
  CHECK_FALSE(told({{"paths.nvme.write", "14 GB/s"}}).assumed);
  CHECK_THAT(told({{"paths.nvme.read", "14 GB/s"}, {"paths.nvme.read_mixed", "6 GB/s"}}).source,
             !Containing("set it too"));
}

TEST_CASE("every provenance key can be overridden with its own text", "[profile]") {
  const Folder folder;
  const Machine machine = load_machine(folder.node());
  for (const Provenance& p : machine.provenance()) {
    const bool is_curve = p.value.starts_with("[");
    INFO(p.key);
    CHECK(faults(folder, {{is_curve ? p.key + ".points" : p.key, p.value}}) == "none");
  }
}

TEST_CASE("errors of a component name its file and line", "[profile]") {
  CHECK_THAT(faults_after("gpu.yaml", "100 TFLOP/s", "100 TFLOPS"),
             Containing("gpu.yaml:5: gpus.peak_16.value: '100 TFLOPS' is not an arithmetic rate"));
  CHECK_THAT(faults_after("drive.yaml", "80 us", "-80 us"),
             Containing("drive.yaml:6: paths.nvme.latency.value: '-80 us' must be zero or more"));
  CHECK_THAT(faults_after("drive.yaml", "1 TB", "-1 TB"), Containing("must be greater than zero"));
  CHECK_THAT(faults_after("gpu.yaml", "launch:", "lauch:"),
             Containing("gpu.yaml:11: gpus.lauch: unknown key; did you mean 'launch'?"));
}

TEST_CASE("a value without an origin is an error", "[profile]") {
  CHECK_THAT(faults_after("gpu.yaml", "{value: 80 GiB, source: \"datasheet\"}", "{value: 80 GiB}"),
             Containing("gpu.yaml:3: gpus.memory: has no origin"));
  CHECK_THAT(faults_after("gpu.yaml", "{value: 80 GiB, source: \"datasheet\"}", "80 GiB"),
             Containing("write {value: 80 GiB, source: where it is from}"));
  CHECK_THAT(faults_after("gpu.yaml", "source: \"datasheet\"", "source: \"\""),
             Containing("gpus.memory.source: is empty"));
  CHECK_THAT(faults_after("gpu.yaml", "source: \"datasheet\"", "source: a, assumed: b"),
             Containing("gpus.memory.assumed: stands beside a source"));
  CHECK_THAT(faults_after("gpu.yaml", "{value: 80 GiB, source: \"datasheet\"}", "[80 GiB]"),
             Containing("is not a cited value"));
}

TEST_CASE("uncertainty is a percentage", "[profile]") {
  CHECK_THAT(faults_after("gpu.yaml", "5 %", "0.05"), Containing("in percent, such as 5 %"));
  CHECK_THAT(faults_after("gpu.yaml", "5 %", "500 %"), Containing("in percent, such as 5 %"));
}

TEST_CASE("curves have distinct points and efficiencies in (0, 1]", "[profile]") {
  CHECK_THAT(faults_after("gpu.yaml", "[1 TFLOP, 0.6]", "[1 TFLOP, 60]"),
             Containing("is 60; it must"));
  CHECK_THAT(faults_after("gpu.yaml", "[1 TFLOP, 0.6]", "[1 TFLOP]"), Containing("is not a point"));
  CHECK_THAT(faults_after("gpu.yaml", "[1 TFLOP, 0.6]", "[1 GFLOP, 0.6]"),
             Containing("gpus.gemm_efficiency.points: has two points of one size"));
  CHECK_THAT(faults_after("gpu.yaml", "[[1 GFLOP, 0.2], [1 TFLOP, 0.6]]", "[]"),
             Containing("has no points"));
}

TEST_CASE("a component that is missing or of another kind is said once", "[profile]") {
  const std::string absent = faults_after("node.yaml", "gpu.yaml", "h100.yaml");
  CHECK_THAT(absent, Containing("node.yaml:5: gpus.component: there is no file"));
  CHECK(std::ranges::count(absent, '\n') == 1);
  CHECK(faults_after("gpu.yaml", "kind: gpu", "kind: drive") ==
        "gpu.yaml:1: kind: is 'drive'; gpu is expected here\n");
  CHECK_THAT(faults_after("drive.yaml", "kind: drive\n", ""),
             Containing("is missing; drive or file_system is expected here"));
}

TEST_CASE("a component is not a node", "[profile]") {
  CHECK_THAT(faults_after("node.yaml", "kind: node", "kind: gpu"),
             Containing("is a part of a machine's profile"));
}

TEST_CASE("a path needs its bandwidths, and a cache what follows it", "[profile]") {
  CHECK_THAT(faults_after("drive.yaml", "read: {value: 6 GB/s, source: \"datasheet\"}\n", ""),
             Containing("paths.nvme.read: is missing"));
  CHECK_THAT(
      faults_after("drive.yaml", "write_sustained: {value: 1 GB/s, source: \"a review\"}\n", ""),
      Containing("paths.nvme.write_sustained: is missing"));
  CHECK_THAT(faults_after("drive.yaml", "write_sustained: {value: 1", "write_sustained: {value: 5"),
             Containing("is faster than write"));
}

TEST_CASE("a path that reaches GPU memory says so, with its origin", "[profile]") {
  const auto after = [](const std::string& line) {
    return faults_after("drive.yaml", "endurance:", line + "\nendurance:");
  };
  const Folder folder;
  CHECK_FALSE(load_machine(folder.node()).paths()[0].gpudirect);
  CHECK(load_machine(folder.node(), {{"paths.nvme.gpudirect", "true"}}).paths()[0].gpudirect);
  folder.edit("drive.yaml", "endurance:", "gpudirect: {value: true, source: gdscheck}\nendurance:");
  const Machine m = load_machine(folder.node());
  CHECK(m.paths()[0].gpudirect);
  CHECK(origin(m, "paths.nvme.gpudirect").source == "gdscheck");
  CHECK_THAT(after("gpudirect: true"),
             Containing("drive.yaml:8: paths.nvme.gpudirect: has no origin"));
  CHECK_THAT(after("gpudirect: {value: maybe, source: gdscheck}"),
             Containing("drive.yaml:8: paths.nvme.gpudirect.value: is") &&
                 Containing("write true or false"));
  CHECK_THAT(after("gpu_direct: {value: true, source: gdscheck}"),
             Containing("did you mean 'gpudirect'?"));
}

TEST_CASE("a kernel launch of the host costs what the profile says, or a usual value",
          "[profile]") {
  const Folder folder;
  CHECK(load_machine(folder.node()).host().launch == 8_us);
  CHECK(origin(load_machine(folder.node()), "host.launch").assumed);
  folder.edit("node.yaml", "  base_use:", "  launch: {value: 6 us, source: a trace}\n  base_use:");
  CHECK(load_machine(folder.node()).host().launch == 6_us);
  CHECK_THAT(faults_after("node.yaml",
                          "  base_use:", "  launch: {value: -6 us, source: a trace}\n  base_use:"),
             Containing("node.yaml:15: host.launch.value: '-6 us' must be zero or more"));
}

TEST_CASE("several GPUs need a fabric", "[profile]") {
  CHECK_THAT(faults_after("node.yaml", "fabric:\n", "network:\n  nodes: 2\n"),
             Containing("has several GPUs and no fabric"));
}

TEST_CASE("one adapter of the network carries its part, or what the profile says", "[profile]") {
  const std::string network =
      "network: {nodes: 4, per_node: {value: 80 GB/s, source: \"a datasheet\"}, "
      "latency: {value: 10 us, source: \"nccl-tests\"}";
  const auto per_nic = [&](const std::string& rest) {
    const Folder folder;
    folder.edit("node.yaml", "fabric:\n", network + rest + "}\nfabric:\n");
    return load_machine(folder.node()).fabric().per_nic;
  };
  CHECK(per_nic("") == 40_GBps);  // of two GPUs
  CHECK(per_nic(", per_nic: {value: 50 GB/s, source: \"a datasheet\"}") == 50_GBps);
  CHECK_THAT(faults_after("node.yaml", "fabric:\n",
                          network + ",\n  per_nic: {value: 90 GB/s, source: \"a datasheet\"}}\n"
                                    "fabric:\n"),
             Containing("node.yaml:19: network.per_nic: is more than all adapters of the node"));
  CHECK_THAT(faults_after("node.yaml", "fabric:\n", network + ",\n  per_nick: 1 GB/s}\nfabric:\n"),
             Containing("node.yaml:19: network.per_nick: unknown key; did you mean 'per_nic'?"));
}

TEST_CASE("a GPU stands behind one root port", "[profile]") {
  CHECK_THAT(faults_after("node.yaml", "gpus: [0, 1]", "gpus: [0, 0]"),
             Containing("is behind another root port already"));
  CHECK_THAT(faults_after("node.yaml", "gpus: [0, 1]", "gpus: [0, 2]"),
             Containing("must lie between 0 and 1"));
}

TEST_CASE("profiles are found by path or by name", "[profile]") {
  const Folder folder;
  CHECK(find_profile(folder.node(), ".") == folder.node());
  const std::string dir = fs::path(folder.node()).parent_path().string();
  CHECK(find_profile("node.yaml", dir) == folder.node());
  CHECK(find_profile("h200_8gpu", dir) == TIDEGATE_SOURCE_DIR "/hw_profiles/h200_8gpu.yaml");
  CHECK_THROWS_WITH(find_profile("h200_8gpus", dir),
                    Containing("did you mean 'h200_8gpu'?") && Containing(" a100_8gpu"));
  CHECK_THROWS_WITH(find_profile("nodes.yaml", dir), Containing("there is no profile"));
}
