#include <algorithm>

#include "models/base/error.hpp"
#include "sim/run/predict.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;

namespace {

// Four tensors of a million parameters on one GPU of a node with 1 GiB of system and 2 GiB a
// process; what a test does not say is small.
const std::string scenario =
    "workload:\n"
    "  layers:\n"
    "    - {name: a, forward: [{elementwise: {bytes: 1 kB}}],\n"
    "       parameters: [{name: w0, elements: 1000000}, {name: w1, elements: 1000000},\n"
    "                    {name: w2, elements: 1000000}, {name: w3, elements: 1000000}]}\n"
    "  dtype: fp16\n"
    "hardware: h200_8gpu\n"
    "ranks: 1\n"
    "iterations: 2\n"
    "policy: {}\n";

constexpr double gib = 1 << 30;
constexpr double processes = 3 * gib;  // 1 of system, 2 of the process

struct Files {
  test::TemporaryFolder folder;
  std::string file = folder.write("s.yaml", scenario);

  Report report(std::vector<Override> overrides) const {
    overrides.emplace_back("machine.host.base_use", "1 GiB");
    overrides.emplace_back("machine.host.process_use", "2 GiB");
    Scenario s = load_scenario(file, overrides);
    return predict(s).report;
  }
  Report::Pool pool(const char* name, const std::vector<Override>& overrides) const {
    const Report r = report(overrides);
    return *std::ranges::find(r.pools, name, &Report::Pool::name);
  }
  std::string error_of(const std::vector<Override>& overrides) const {
    try {
      load_scenario(file, overrides);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
};

double held(const std::vector<Report::Owner>& owners, const std::string& name) {
  const auto at = std::ranges::find(owners, name, &Report::Owner::name);
  return at == owners.end() ? 0 : static_cast<double>(at->bytes);
}

std::vector<Override> loading(const std::string& how) { return {{"loading", how}}; }

}  // namespace

TEST_CASE("every rank loads by itself, apart from training", "[policy][loading]") {
  const Files files;
  const auto startup = [&](const std::string& how, const std::vector<Override>& more = {}) {
    std::vector<Override> all = loading(how);
    all.insert(all.end(), more.begin(), more.end());
    return files.pool("host", all).startup_peak.value() - processes;
  };
  // 4e6 parameters: 16 MB in fp32, 8 MB in fp16.
  CHECK(startup("{method: from_config}") == 16e6);
  CHECK(startup("{method: from_config, dtype: fp16}") == 8e6);
  CHECK(startup("{method: from_pretrained}") == 32e6);  // and the checkpoint beside it
  CHECK(startup("{method: low_cpu_mem_usage, dtype: fp16, checkpoint_file: 3 MB}") == 11e6);
  CHECK(startup("{method: zero_init, checkpoint_file: 3 MB}", {{"policy.zero.stage", "3"}}) == 3e6);
  // Three ranks: three copies, and two processes more.
  CHECK(startup("{method: from_config}", {{"ranks", "3"}}) == 3 * 16e6 + 2 * 2 * gib);
  const Report::Pool host = files.pool("host", loading("{method: from_config}"));
  CHECK(host.training_peak.value() == processes);
  CHECK(host.peaks_at_startup());
  CHECK(held(host.owners, "whole networks") == 16e6);
  CHECK(held(host.training_owners, "whole networks") == 0);
}

TEST_CASE("without a loading section start-up holds what training begins with",
          "[policy][loading]") {
  const Report::Pool host = Files().pool("host", {});
  CHECK(host.startup_peak.value() == processes);
  CHECK(host.training_peak.value() == processes);
  CHECK_FALSE(host.peaks_at_startup());
}

TEST_CASE("ZeRO 1 and 2 flatten the parameters in host memory, each rank twice",
          "[policy][loading]") {
  // 2 · 4e6 · 2 B = 16 MB a rank; the network itself, 8 MB in fp16, is gone by then. With two ranks
  // that is 32 MB against 16 MB.
  const Files files;
  for (const char* stage : {"1", "2"}) {
    const Report::Pool host = files.pool("host", {{"loading", "{method: from_config, dtype: fp16}"},
                                                  {"policy.zero.stage", stage},
                                                  {"ranks", "2"}});
    CHECK(host.startup_peak.value() - processes - 2 * gib == 32e6);
    CHECK(host.peak_task == "flatten parameters");
  }
}

TEST_CASE("start-up alone can be too much", "[policy][loading]") {
  // 3 GiB and 10 MB of room: training needs 3 GiB, loading 16 MB more.
  const Report report = Files().report(
      {{"loading", "{method: from_config}"}, {"machine.host.memory", "3231225472 B"}});
  CHECK_FALSE(report.fits);
  REQUIRE(report.overflows.size() == 1);
  CHECK(report.overflows[0].pool == "host");
  CHECK(report.overflows[0].task == "load parameters");
  const std::string text = to_text(report);
  CHECK_THAT(text, Containing("Does not fit.") &&
                       Containing("Start-up alone is too much; training needs 3 GiB.") &&
                       Containing("host, start-up") && Containing("host, training"));
}

TEST_CASE("a wrong loading section is a located error that says what would be right",
          "[policy][loading][input]") {
  const Files files;
  const auto said = [&](const std::string& how) { return files.error_of(loading(how)); };
  CHECK_THAT(said("{}"), Containing("loading.method: is missing"));
  CHECK_THAT(said("{method: zero_innit}"), Containing("did you mean 'zero_init'?"));
  CHECK_THAT(said("{method: zero_init}"),
             Containing("zero_init needs policy.zero.stage 3, which is 0"));
  CHECK_THAT(said("{method: from_config, checkpoint_file: 1 GB}"),
             Containing("loading.checkpoint_file: applies to low_cpu_mem_usage and zero_init"));
  CHECK_THAT(said("{method: from_config, dtypes: fp16}"), Containing("did you mean 'dtype'?"));
  CHECK_THAT(said("{method: from_config, dtype: fp8}"), Containing("fp32"));
}

TEST_CASE("pinned allocations take powers of two, unpinned ones what they hold",
          "[policy][pinned]") {
  const Files files;
  // Stage 2, one rank, 4e6 parameters: fp32 parameters 16e6 -> 2^24, moments 32e6 unpinned,
  // gradients 16e6 -> 2^24, 16-bit copies 8e6 -> 2^23, staging of one tensor 2e6 -> 2^21.
  const auto owners = [&](std::vector<Override> more) {
    more.insert(more.begin(), {{"policy.zero.stage", "2"}, {"policy.optimizer", "zero_offload"}});
    return files.pool("host", more).owners;
  };
  const auto rounded = owners({});
  CHECK(held(rounded, "optimizer states") == (1 << 24) + 32e6);
  CHECK(held(rounded, "fp32 gradients") == 1 << 24);
  CHECK(held(rounded, "16-bit parameter copies") == 1 << 23);
  CHECK(held(rounded, "gradient staging") == 1 << 21);
  CHECK(held(rounded, "16-bit gradients") == 0);
  // Accumulated gradients are an allocation of each tensor: 4 · 2^21.
  CHECK(held(owners({{"workload.accumulation", "2"}}), "16-bit gradients") == 4 << 21);
  const auto exact = owners({{"policy.pinned_allocations", "exact"}});
  CHECK(held(exact, "optimizer states") == 48e6);
  CHECK(held(exact, "fp32 gradients") == 16e6);
  const auto unpinned = owners({{"policy.optimizer", "{name: zero_offload, pin_memory: false}"}});
  CHECK(unpinned == exact);
  // Stage 3 leaves the fp32 parameters unpinned; its 16-bit gradients are one buffer, 8e6 -> 2^23.
  const auto sharded = owners({{"policy.zero.stage", "3"}});
  CHECK(held(sharded, "optimizer states") == 48e6);
  CHECK(held(sharded, "fp32 gradients") == 1 << 24);
  CHECK(held(sharded, "16-bit gradients") == 1 << 23);
}

TEST_CASE("Twin-Flow moves whole sub-groups", "[policy]") {
  // Four sub-groups of 1e6: floor((1 - ratio) · 4) of them on the GPU, 12 B and 4 B of gradients
  // each.
  const Files files;
  const auto gpu_states = [&](const char* ratio) {
    const std::string policy =
        std::string("{name: twin_flow, sub_group_size: 1000000, ratio: ") + ratio + "}";
    const auto owners =
        files.pool("gpu0", {{"policy.zero.stage", "3"}, {"policy.optimizer", policy}}).owners;
    return std::pair(held(owners, "optimizer states"), held(owners, "fp32 gradients"));
  };
  CHECK(gpu_states("1") == std::pair(0.0, 0.0));
  CHECK(gpu_states("0.8") == std::pair(0.0, 0.0));
  CHECK(gpu_states("0.75") == std::pair(12e6, 4e6));
  CHECK(gpu_states("0.6") == std::pair(12e6, 4e6));
  CHECK(gpu_states("0.5") == std::pair(24e6, 8e6));
  CHECK(gpu_states("0") == std::pair(48e6, 16e6));
}

TEST_CASE("Adam on the GPU has an fp32 copy of what it updates at once", "[policy]") {
  const Files files;
  const auto peak = [&](std::vector<Override> overrides) {
    overrides.emplace_back("machine.gpus.blas_workspace", "0 B");
    return files.pool("gpu0", overrides).peak.value();
  };
  // Stage 2, one rank, no bucket worth mention: parameters 8, states 48 and the partition of
  // gradients 8 MB stay; gradients of the layer (8) in backward, their fp32 copy (16) in the
  // update.
  const std::vector<Override> zero2 = {{"policy.zero", "{stage: 2, reduce_bucket_size: 1}"}};
  CHECK(peak(zero2) == 8e6 + 48e6 + 8e6 + 16e6 + 2);
  // Without master weights the moments are 16-bit and there is no copy: 8 + 16 + 8, and 8 in
  // backward.
  auto pure = zero2;
  pure.emplace_back("policy.optimizer", "{name: resident, master_weights: false}");
  CHECK(peak(pure) == 8e6 + 16e6 + 8e6 + 8e6 + 2);
  // fp32 without ZeRO: 4 B parameters, 4 B gradients, 8 B moments; gradients come with backward.
  CHECK(peak({{"workload.dtype", "fp32"}}) == 4 * 16e6);
}

TEST_CASE("a single rank has its reduce bucket too", "[policy]") {
  // Contiguous gradients: 5e8 elements of 2 B, whatever the size of the network.
  const auto owners = Files().pool("gpu0", {{"policy.zero.stage", "2"}}).owners;
  CHECK(held(owners, "reduce bucket") == 1e9);
}

TEST_CASE("before ZeRO-2 gradients grow during backward, while activations go", "[policy]") {
  // Two layers of 1e6 parameters (4 MB of gradients in fp32) that save 3 MB each; parameters 8 MB,
  // moments 16 MB. At the start of backward 6 MB are saved and 4 MB of gradients come: 10. The
  // second layer has 3 saved and 8 of gradients: 11, the peak. All gradients and all activations
  // would be 14.
  const test::TemporaryFolder folder;
  const std::string file = folder.write("two.yaml",
                                        "workload:\n"
                                        "  layers:\n"
                                        "    - {name: a, forward: [{elementwise: {bytes: 1 kB}}], "
                                        "parameters: 1000000, saved: [{name: "
                                        "s, bytes: 3 MB}]}\n"
                                        "    - {name: b, forward: [{elementwise: {bytes: 1 kB}}], "
                                        "parameters: 1000000, saved: [{name: "
                                        "s, bytes: 3 MB}]}\n"
                                        "  dtype: fp32\n"
                                        "hardware: workstation_rtx4090\npolicy: {}\n");
  for (const char* accumulation : {"1", "3"}) {
    Scenario s = load_scenario(file, {{"workload.accumulation", accumulation}});
    const Prediction p = predict(s);
    // With accumulation gradients stay: 8 MB and 6 MB of activations from the second micro-step on,
    // and the new gradient of a layer, 4 MB, before it is added.
    const double expected = accumulation[0] == '1' ? 11e6 : 18e6;
    const double workspaces = 2 * 8.125 * 1024 * 1024;  // cuBLAS, forward and backward threads
    CHECK(p.report.pools[0].peak.value() == 24e6 + workspaces + expected);
  }
}
