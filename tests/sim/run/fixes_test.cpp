#include "sim/run/fixes.hpp"

#include <algorithm>

#include "sim/run/changes.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;
using test::TemporaryFolder;

namespace {

const std::string scenarios = std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/";
constexpr double gibi = 1024.0 * 1024 * 1024;

// Four blocks that each keep 3 GiB for backward and have an input of 1 GiB, on one GPU.
std::string four_blocks(const std::string& of_a_block = "") {
  std::string layers;
  for (const char* name : {"a", "b", "c", "d"}) {
    layers += std::string("    - {name: ") + name +
              ", forward: [{elementwise: {bytes: 100 GB}}], saved: [{name: s, bytes: 3 GiB}], "
              "input: 1 GiB" +
              of_a_block + "}\n";
  }
  return "workload:\n  sequence: 16\n  layers:\n" + layers +
         "hardware: workstation_rtx4090\npolicy: {}\n";
}

std::vector<Override> with_gpu(const std::string& memory) {
  return {{"machine.gpus.memory", memory},
          {"machine.gpus.context", "0 B"},
          {"machine.gpus.blas_workspace", "0 B"}};
}

Report::Fixes fixes_of(const std::string& path, const std::vector<Override>& overrides,
                       const FixSearch& search = {}) {
  Scenario scenario = load_scenario(path, overrides);
  const Prediction p = predict(scenario);
  REQUIRE(!p.report.fits);
  return find_fixes(path, overrides, p, search);
}

std::vector<std::vector<std::string>> sets_of(const Report::Fixes& fixes) {
  std::vector<std::vector<std::string>> all;
  for (const Report::Fix& fix : fixes.found) all.push_back(fix.sets);
  return all;
}

bool sets_key(const Report::Fix& fix, const std::string& key) {
  return std::ranges::any_of(fix.sets, [&](const auto& s) { return s.starts_with(key + "="); });
}

bool offers(const Report::Fixes& fixes, const std::vector<std::string>& sets) {
  const auto all = sets_of(fixes);
  return std::ranges::find(all, sets) != all.end();
}

}  // namespace

TEST_CASE("what is too much by a known amount is cured by the change known to be enough",
          "[fixes]") {
  // Kept: 4 · 3 = 12 GiB, 2 more than there are. Full recomputation: 3 inputs of other blocks, the
  // 3 GiB of the block that runs again, and two gradients of 1 GiB in its backward: 8. There is no
  // attention core, so selective recomputation keeps all 12.
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", four_blocks());
  // Planners that move 2 GiB and hide it come first.
  const Report::Fixes fixes = fixes_of(path, with_gpu("10 GiB"), {.wanted = 20});
  const std::vector<std::string> full = {"policy.activations={name: recompute, mode: full}"};
  const auto found = std::ranges::find(fixes.found, full, &Report::Fix::sets);
  REQUIRE(found != fixes.found.end());
  const Report::Fix& first = *found;
  REQUIRE(first.pools.size() == 1);
  CHECK(first.pools[0].name == "gpu0");
  CHECK(first.pools[0].peak.value() == 8 * gibi);
  CHECK(first.pools[0].capacity.value() == 10 * gibi);
  // Forward 1, backward 2, forward again 1: 4 instead of 3. Launches are nothing beside 0.1 s.
  CHECK(first.slow_down == Approx(4.0 / 3).epsilon(0.001));
  CHECK(!offers(fixes, {"policy.activations={name: recompute, mode: selective}"}));
  CHECK(!fixes.nearest);
}

TEST_CASE("when nothing fits, the nearest change says the size that would", "[fixes]") {
  // As above, full recomputation needs 8 GiB; nothing needs less.
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", four_blocks());
  const Report::Fixes fixes = fixes_of(path, with_gpu("6.5 GiB"));
  CHECK(fixes.found.empty());
  REQUIRE(fixes.nearest);
  CHECK(fixes.nearest->sets ==
        std::vector<std::string>{"policy.activations={name: recompute, mode: full}"});
  CHECK(fixes.nearest->pools[0].peak.value() == 8 * gibi);
}

TEST_CASE("when no single change fits, pairs do", "[fixes]") {
  // 2^28 parameters a block, 2^30 in all: 2 GiB of them, 2 GiB of gradients, 12 GiB of states, and
  // 12 GiB of activations. With 12.5 GiB the states must go (12 and more stand beside any
  // activations), and the activations too (12, and the gradients or parameters of a block).
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", four_blocks(", parameters: 268435456"));
  const Report::Fixes fixes = fixes_of(path, with_gpu("12.5 GiB"));
  REQUIRE(!fixes.found.empty());
  for (const Report::Fix& fix : fixes.found) {
    INFO(fix.what);
    CHECK(sets_key(fix, "policy.activations"));
    CHECK(sets_key(fix, "policy.optimizer"));
  }
}

TEST_CASE("states that pinning rounds beyond the host fit without it", "[fixes]") {
  // 6738415616 parameters. Unpinned: states 75.3 GiB, fp32 gradients 25.1, 16-bit copies and
  // gradients 12.55 each, and 8 GiB of system and process: 133.8 with staging. Pinning rounds fp32
  // parameters and gradients up to 32 GiB and the copies to 16: at least 151.
  const Report::Fixes fixes =
      fixes_of(scenarios + "llama2_7b_zero_offload_4090.yaml",
               {{"policy.optimizer.pin_memory", "true"}, {"machine.host.memory", "140 GiB"}},
               {.wanted = 20});
  CHECK(offers(fixes, {"policy.optimizer.pin_memory=false"}));
}

TEST_CASE("files that overflow one path go to another", "[fixes]") {
  // 68.6e9 parameters of 12 B are 767 GiB, and pfs has 909 TiB.
  const Report::Fixes fixes =
      fixes_of(scenarios + "zero_infinity_70b.yaml", {{"machine.paths.nvme.capacity", "400 GiB"}});
  REQUIRE(!fixes.found.empty());
  for (const Report::Fix& fix : fixes.found) {
    const auto nvme = std::ranges::find(fix.pools, "nvme", &Report::Fix::Pool::name);
    REQUIRE(nvme != fix.pools.end());
    CHECK(nvme->peak <= nvme->capacity);
  }
}

TEST_CASE("what is offered fits when it is run, and only because of what it sets",
          "[fixes][laws]") {
  struct Case {
    const char* file;
    std::vector<Override> overrides;
  };
  const std::vector<Case> cases = {
      {"llama31_8b_h200.yaml", {{"workload.micro_batch", "8"}}},
      {"llama31_8b_h200.yaml", {{"hardware", "a100_8gpu"}}},
      {"llama31_8b_h200.yaml", {{"hardware", "workstation_rtx4090"}}},
      {"llama2_7b_zero_offload_4090.yaml",
       {{"policy.activations", "keep"}, {"workload.micro_batch", "4"}}},
      {"llama2_7b_zero_offload_4090.yaml", {{"machine.host.memory", "90 GiB"}}},
      {"qwen25_7b_twin_flow_a100.yaml", {{"machine.gpus.memory", "20 GiB"}}},
      {"mlp_offload_70b.yaml", {{"policy.optimizer", "resident"}}},
      {"mlp_offload_70b.yaml", {{"machine.host.memory", "300 GiB"}}},
  };
  for (const Case& c : cases) {
    INFO(c.file << " " << c.overrides.front().first << "=" << c.overrides.front().second);
    const std::string path = scenarios + c.file;
    Scenario scenario = load_scenario(path, c.overrides);
    const Prediction before = predict(scenario);
    const Report::Fixes fixes = find_fixes(path, c.overrides, before);
    CHECK(fixes.tried <= 40);
    CHECK(fixes.found.size() <= 3);
    CHECK(fixes.found.empty() == fixes.nearest.has_value());
    for (std::size_t i = 0; i < fixes.found.size(); ++i) {
      const Report::Fix& fix = fixes.found[i];
      INFO(fix.what);
      std::vector<Override> overrides = c.overrides;
      for (const std::string& set : fix.sets) overrides.push_back(read_override(set));
      Scenario changed = load_scenario(path, overrides);
      const Report after = predict(changed).report;
      CHECK(after.fits);
      CHECK(after.iteration_time == fix.iteration_time);
      CHECK(after.facts.tokens_per_iteration == before.report.facts.tokens_per_iteration);
      CHECK(after.facts.parameters == before.report.facts.parameters);
      CHECK(after.facts.model_flops.value() == Approx(before.report.facts.model_flops.value()));
      if (i > 0) CHECK(fixes.found[i - 1].sets.size() <= fix.sets.size());
    }
  }
}

TEST_CASE("what two changes almost cure, a third does", "[fixes]") {
  // 8030261248 parameters on a GPU of 23.15 GiB: 12 B each of states (90 GiB) and 37 GiB of
  // activations of one sequence must go, which two changes do; the gradients of the head, its
  // workspace and a block's activations are then too much beside parameters of 15 GiB.
  const Report::Fixes fixes =
      fixes_of(scenarios + "llama31_8b_h200.yaml", {{"hardware", "workstation_rtx4090"}});
  REQUIRE(!fixes.found.empty());
  for (const Report::Fix& fix : fixes.found) {
    INFO(fix.what);
    CHECK(sets_key(fix, "policy.activations"));
    CHECK(sets_key(fix, "policy.optimizer"));
  }
}

TEST_CASE("the same scenario gets the same changes", "[fixes]") {
  const std::string path = scenarios + "qwen25_7b_twin_flow_a100.yaml";
  const std::vector<Override> overrides = {{"machine.gpus.memory", "20 GiB"}};
  const auto first = fixes_of(path, overrides), second = fixes_of(path, overrides);
  CHECK(first.tried == second.tried);
  CHECK(!first.found.empty());
  CHECK(sets_of(first) == sets_of(second));
}

TEST_CASE("no more simulations are run than allowed", "[fixes]") {
  const std::string path = scenarios + "mlp_offload_70b.yaml";
  const std::vector<Override> overrides = {{"policy.optimizer", "resident"}};
  Scenario scenario = load_scenario(path, overrides);
  const Prediction p = predict(scenario);
  std::int32_t told = 0;
  const auto fixes = find_fixes(path, overrides, p,
                                {.most_simulations = 2, .progress = [&](std::int32_t) { ++told; }});
  CHECK(fixes.tried == 2);
  CHECK(told == 2);
}

TEST_CASE("no change takes more swap buffers away than the update can do without", "[fixes]") {
  // 50 buffers on a host of 100 GiB are too much; a half and a quarter are 25 and 12, of which the
  // update holds 12. Of 20, a quarter would be 5.
  for (const char* count : {"50", "20"}) {
    const std::vector<Override> overrides = {{"machine.host.memory", "100 GiB"},
                                             {"workload.network.layers", "8"},
                                             {"policy.optimizer.buffer_count", count}};
    const std::string path = scenarios + "zero_infinity_70b.yaml";
    Scenario scenario = load_scenario(path, overrides);
    const Prediction p = predict(scenario);
    REQUIRE(!p.report.fits);
    std::vector<std::int64_t> counts;
    for (const Change& change : changes_for(p, scenario, scenario_values(path, overrides))) {
      for (const auto& [key, text] : change.sets) {
        if (key == "policy.optimizer.buffer_count") counts.push_back(std::stoll(text));
      }
    }
    CHECK(!counts.empty());
    CHECK(std::ranges::min(counts) == 12);
  }
}
