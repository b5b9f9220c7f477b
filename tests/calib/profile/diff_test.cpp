#include "calib/profile/diff.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "models/base/error.hpp"
#include "tests/calib/profile/files.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;

namespace {

std::string node(const std::string& name, const std::string& body) {
  return "kind: node\nname: " + name + "\n" + body;
}
std::string host(const std::string& name, const std::string& entries) {
  return node(name, "host: {" + entries + "}\n");
}
std::string cited(const std::string& value, const std::string& uncertainty) {
  return "{value: " + value + ", source: s" +
         (uncertainty.empty() ? "" : ", uncertainty: " + uncertainty) + "}";
}

const Diff::Change& change(const Diff& diff, const std::string& key) {
  return *std::ranges::find(diff.changes, key, &Diff::Change::key);
}

}  // namespace

TEST_CASE("a change counts when it exceeds the noise of both profiles", "[diff]") {
  const Files files;
  const auto a = files.write("a.yaml", host("a", "memory_bandwidth: " + cited("100 GB/s", "3 %") +
                                                     ", adam_rate: " + cited("1e9", "3 %")));
  const auto b = files.write("b.yaml", host("b", "memory_bandwidth: " + cited("80 GB/s", "4 %") +
                                                     ", adam_rate: " + cited("1.05e9", "4 %")));
  const Diff d = diff(a, b);
  REQUIRE(d.changes.size() == 2);
  // Noise: sqrt(3² + 4²) = 5 %. log 0.8 = -0.2231: z = 4.46, p = 8.1e-6, times two values.
  const Diff::Change& memory = change(d, "host.memory_bandwidth");
  CHECK(memory.ratio == Approx(0.8));
  CHECK(memory.uncertainty == Approx(0.05));
  CHECK(memory.p == Approx(1.6e-5).epsilon(0.03));
  CHECK(memory.is_beyond_noise());
  // log 1.05 = 0.0488: z = 0.976, p = 0.329, the larger of two: times one.
  CHECK(change(d, "host.adam_rate").p == Approx(0.329).epsilon(0.01));
  CHECK(d.beyond_noise() == 1);
  CHECK(d.changes[0].key == "host.memory_bandwidth");
  CHECK_THAT(to_text(d), Containing("a -> b: 1 of 2 values changed beyond noise"));
  CHECK_THAT(to_json(d), Containing("\"beyond_noise\": 1"));
}

TEST_CASE("with many values a single one needs more to count", "[diff]") {
  // One of ten differs by z = 2.33, p = 0.02: alone it counts, among ten it is 0.2.
  const Files files;
  std::string a, b;
  for (int i = 0; i < 10; ++i) {
    const std::string key = "k" + std::to_string(i);
    a += (i ? ", " : "") + key + ": " + cited("1", "10 %");
    b += (i ? ", " : "") + key + ": " + cited(i == 3 ? "1.39" : "1", "10 %");
  }
  const Diff many = diff(files.write("a.yaml", host("a", a)), files.write("b.yaml", host("b", b)));
  CHECK(change(many, "host.k3").p == Approx(0.2).epsilon(0.03));
  CHECK(many.beyond_noise() == 0);
  const Diff one = diff(files.write("c.yaml", host("c", "k3: " + cited("1", "10 %"))),
                        files.write("d.yaml", host("d", "k3: " + cited("1.39", "10 %"))));
  CHECK(one.beyond_noise() == 1);
}

TEST_CASE("what has no noise or no partner is listed, not tested", "[diff]") {
  const Files files;
  const auto a = files.write(
      "a.yaml", host("a", "cores: " + cited("8", "") + ", memory: " + cited("64 GiB", "") +
                              ", old: " + cited("1", "") + ", rate: " + cited("1 GB/s", "5 %")));
  const auto b = files.write(
      "b.yaml", host("b", "cores: " + cited("16", "") + ", memory: " + cited("65536 MiB", "") +
                              ", new: " + cited("1", "5 %") + ", rate: " + cited("9 GB/s", "")));
  const Diff d = diff(a, b);
  CHECK(d.changes.empty());
  REQUIRE(d.untested.size() == 2);
  CHECK(d.untested[0].key == "host.cores");
  CHECK(d.untested[1].key == "host.rate");
  CHECK(d.equal == 1);  // 64 GiB = 65536 MiB
  CHECK(d.only_before == std::vector<std::string>{"host.old"});
  CHECK(d.only_after == std::vector<std::string>{"host.new"});
  CHECK_THAT(to_text(d), Containing("noise not told in both") && Containing("only in b"));
}

TEST_CASE("curves are compared at their common sizes", "[diff]") {
  const Files files;
  const auto curve = [](const std::string& points) {
    return node(
        "n", "gpus: {gemm_efficiency: {points: " + points + ", source: s, uncertainty: 10 %}}\n");
  };
  const auto a =
      files.write("a.yaml", curve("[[1 GFLOP, 0.2], [10 GFLOP, 0.5], [100 GFLOP, 0.8]]"));
  const auto b =
      files.write("b.yaml", curve("[[1 GFLOP, 0.3], [10000 MFLOP, 0.5], [1 TFLOP, 0.9]]"));
  // Two common sizes; log 1.5 over 14.1 %: z = 2.867, p = 0.00414, times two.
  const Diff d = diff(a, b);
  CHECK(d.changes.at(0).ratio == Approx(1.5));
  CHECK(d.changes.at(0).p == Approx(0.0083).epsilon(0.03));
}

TEST_CASE("a profile does not differ from itself", "[diff]") {
  const std::string path = TIDEGATE_SOURCE_DIR "/hw_profiles/h100_4gpu_nvme_pfs.yaml";
  const Diff d = diff(path, path);
  CHECK(d.changes.size() > 10);  // values of its components too
  CHECK(d.beyond_noise() == 0);
  CHECK(d.untested.empty());
  CHECK(d.only_before.empty());
}

TEST_CASE("any two profiles of the collection can be compared", "[diff]") {
  const std::filesystem::path folder = TIDEGATE_SOURCE_DIR "/hw_profiles";
  const std::string first = (folder / "h200_8gpu.yaml").string();
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    const Diff d = diff(first, entry.path().string());
    INFO(entry.path());
    CHECK(d.changes.size() + d.untested.size() + d.equal > 5);
    for (const Diff::Change& c : d.changes) CHECK((c.p >= 0 && c.p <= 1 && std::isfinite(c.ratio)));
  }
}

TEST_CASE("faults of profiles to compare are located", "[diff]") {
  const Files files;
  const auto good = files.write("good.yaml", host("a", "k: " + cited("1", "5 %")));
  CHECK_THROWS_WITH(diff(good, files.write("x.yaml", "kind: gpu\n")),
                    Containing("x.yaml:1:7") && Containing("kind node is expected"));
  CHECK_THROWS_WITH(diff(good, files.write("y.yaml", host("a", "k: " + cited("1", "5")))),
                    Containing("y.yaml:3") && Containing("such as 5 %"));
  CHECK_THROWS_WITH(diff(good, files.write("z.yaml", node("a", "host: {component: none.yaml}\n"))),
                    Containing("z.yaml:3") && Containing("there is no file"));
  CHECK_THROWS_AS(diff(good, "absent.yaml"), InputError);
}
