// A plan does the same arithmetic wherever its bytes live: every task finds what it reads, and the
// run ends with the numbers of the run without offloading.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "models/base/error.hpp"
#include "sim/plan/check.hpp"
#include "sim/timeline/contents.hpp"
#include "tests/catch.hpp"
#include "tests/sim/policy/meaning.hpp"

using namespace tidegate;

namespace {

using Numbers = std::map<std::string, std::uint64_t>;

struct States {
  const char* zero;
  const char* parameters;
  const char* optimizer;
};

std::vector<Override> overrides(int ranks, int accumulation, const std::string& activations,
                                const States& states) {
  auto all = meant::small(ranks, accumulation);
  all.emplace_back("policy.activations", activations);
  all.emplace_back("policy.zero", states.zero);
  all.emplace_back("policy.parameters", states.parameters);
  all.emplace_back("policy.optimizer", states.optimizer);
  return all;
}

void check_faults(const std::vector<std::string>& faults) {
  for (std::size_t i = 0; i < faults.size() && i < 5; ++i) FAIL_CHECK(faults[i]);
  if (faults.size() > 5) FAIL_CHECK("and " << faults.size() - 5 << " more");
}

// A store that could not be cancelled any more goes on writing a buffer that counts as free
// (sim/policy/ssdtrain.cpp); nobody reads what it writes.
bool is_late_store(const std::string& fault) {
  return fault.find("'store") != std::string::npos &&
         fault.find("sees change what it reads") != std::string::npos;
}

// Of a delayed update the new shards wait on the host while passes read the last ones.
bool is_of_step_before(const std::string& fault) {
  return fault.find("reads an outdated copy: shard") != std::string::npos;
}

// The master parameters and moments that a run ends with.
Numbers trained(const Plan& plan, const Timeline& timeline, bool cancels) {
  ContentTrace trace = trace_contents(plan, timeline);
  if (cancels) std::erase_if(trace.faults, is_late_store);
  if (plan.meaning.update.is_delayed) std::erase_if(trace.faults, is_of_step_before);
  check_faults(trace.faults);
  Numbers numbers;
  for (std::size_t c = 0; c < plan.meaning.contents.size(); ++c) {
    const Content& content = plan.meaning.contents[c];
    if (content.kind == Content::Kind::master || content.kind == Content::Kind::moments)
      numbers[to_text(content)] = trace.values[c];
  }
  return numbers;
}

std::string activations_of(const std::vector<Override>& overrides) {
  for (const auto& [key, value] : overrides) {
    if (key == "policy.activations") return value;
  }
  return "";
}

Numbers checked(const std::vector<Override>& overrides) {
  const meant::Run run = meant::run(overrides);
  check_faults(faults(run.plan));
  const bool cancels = activations_of(overrides).find("cancel") != std::string::npos;
  Numbers numbers = trained(run.plan, run.timeline, cancels);
  CHECK(numbers.size() > 10);
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    INFO("random times, seed " << seed);
    CHECK(trained(run.plan, meant::shuffled(run, seed), cancels) == numbers);
  }
  return numbers;
}

constexpr std::array states = {
    States{"{stage: 0}", "resident", "resident"},
    States{"{stage: 1}", "resident", "resident"},
    States{"{stage: 2}", "resident", "resident"},
    States{"{stage: 3}", "resident", "resident"},
    States{"{stage: 1}", "resident", "zero_offload"},
    States{"{stage: 2}", "resident", "zero_offload"},
    States{"{stage: 3}", "resident", "{name: zero_offload, sub_group_size: 1000000}"},
    States{"{stage: 3}", "host", "{name: zero_offload, sub_group_size: 1000000}"},
    States{"{stage: 3}", "{name: nvme, path: nvme}",
           "{name: zero_offload, sub_group_size: 1000000}"},
    States{"{stage: 3}", "resident", "{name: twin_flow, ratio: 0.5, sub_group_size: 1000000}"},
    States{"{stage: 3}", "resident", "{name: zero_infinity, path: nvme, sub_group_size: 1000000}"},
    States{"{stage: 3}", "{name: nvme, path: nvme}",
           "{name: zero_infinity, path: nvme, sub_group_size: 1000000}"},
    States{"{stage: 3}", "host",
           "{name: zero_infinity, path: nvme, sub_group_size: 1000000, pipeline_read: false, "
           "pipeline_write: false}"},
    States{"{stage: 3}", "resident",
           "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 1000000}"},
    States{"{stage: 3}", "host",
           "{name: mlp_offload, paths: [nvme, pfs], assignment: {shares: [2, 1]}, cache: false, "
           "delayed_gradients: false, sub_group_size: 500000}"},
};

constexpr std::array activations = {
    "keep",
    "{name: keep, by_operator: true}",
    "{name: recompute, mode: full}",
    "{name: recompute, mode: full, every: 3}",
    "{name: recompute, mode: full, by_operator: true}",
    "{name: recompute, mode: selective}",
    "{name: ssdtrain, threshold: 65536, to: nvme, profile_iteration: 1}",
    "{name: ssdtrain, threshold: 65536, to: nvme, gpudirect: false, profile_iteration: 1}",
    "{name: ssdtrain, threshold: 65536, to: host, adaptive: false}",
    "{name: ssdtrain, threshold: 65536, to: nvme, adaptive: false, record_first: false}",
    "{name: ssdtrain, threshold: 65536, to: nvme, adaptive: false, forwarding: false}",
    "{name: ssdtrain, threshold: 65536, to: nvme, adaptive: false, cancel_forwarded: true}",
    "{name: ssdtrain, threshold: 65536, to: nvme, adaptive: false, deduplicate: false}",
    "{name: ssdtrain, threshold: 65536, to: nvme, adaptive: false, prefetch: false}",
    "{name: ssdtrain, threshold: 65536, to: nvme, adaptive: false, keep_last_module: true}",
    "{name: swap_all, to: nvme, threshold: 65536}",
    "{name: swap_all, to: host, threshold: 65536}",
    "{name: flash_neuron, to: nvme, threshold: 65536}",
    "{name: g10, to: nvme, threshold: 65536}",
    "{name: teraio, to: nvme, threshold: 65536}",
};

// These train other networks, or keep what they train in other pieces.
constexpr std::array apart = {
    States{"{stage: 1}", "resident", "{name: twin_flow, ratio: 0.4}"},
    States{"{stage: 2}", "resident", "{name: twin_flow, ratio: 0.7}"},
    States{"{stage: 1}", "resident", "{name: zero_offload, delayed_update: true}"},
    States{"{stage: 2}", "resident", "{name: zero_offload, delayed_update: true}"},
    States{"{stage: 3}", "resident",
           "{name: zero_offload, delayed_update: true, sub_group_size: 1000000}"},
    States{"{stage: 3}", "host",
           "{name: zero_offload, delayed_update: true, sub_group_size: 1000000}"},
    States{"{stage: 3}", "{name: nvme, path: nvme}",
           "{name: zero_offload, delayed_update: true, sub_group_size: 1000000}"},
    States{"{stage: 0}", "resident", "{name: resident, algorithm: sgd}"},
    States{"{stage: 2}", "resident", "{name: resident, master_weights: false}"},
    States{"{stage: 3}", "resident", "{name: resident, master_weights: false}"},
};

// Their numbers are other ones for the same values (sim/timeline/contents.hpp).
bool has_numbers_of_its_own(const std::string& kept) {
  return kept.find("selective") != std::string::npos ||
         kept.find("deduplicate: false") != std::string::npos;
}

}  // namespace

TEST_CASE("wherever the states live, the plan trains the network of the resident plan",
          "[policy][meaning]") {
  for (const int accumulation : {1, 3}) {
    for (const int ranks : {1, 4}) {
      for (const States& s : states) {
        INFO(s.zero << " " << s.parameters << " " << s.optimizer << ", " << ranks << " ranks, "
                    << accumulation << " micro-batches");
        const Numbers numbers = checked(overrides(ranks, accumulation, "keep", s));
        CHECK(numbers ==
              checked(overrides(ranks, accumulation, "keep", {s.zero, "resident", "resident"})));
      }
    }
  }
}

TEST_CASE("plans that train another network find what they read as well", "[policy][meaning]") {
  for (const int accumulation : {1, 3}) {
    for (const States& s : apart) {
      INFO(s.zero << " " << s.parameters << " " << s.optimizer << ", " << accumulation
                  << " micro-batches");
      checked(overrides(4, accumulation, "keep", s));
    }
  }
}

TEST_CASE("the stages of a pipeline train the network of the keeping ones", "[policy][meaning]") {
  for (const char* interleave : {"1", "2"}) {
    for (const std::string kept : activations) {
      const bool is_planned = kept.find("swap_all") != std::string::npos ||
                              kept.find("flash_neuron") != std::string::npos ||
                              kept.find("g10") != std::string::npos ||
                              kept.find("teraio") != std::string::npos;
      if (is_planned) continue;  // one micro-batch at a time
      INFO(kept << ", " << interleave << " pieces a stage");
      const auto piped = [&](const std::string& activations_of, const char* optimizer) {
        auto all = overrides(4, 4, activations_of, {"{stage: 1}", "resident", optimizer});
        all.emplace_back("workload.pipeline_parallel", "2");
        all.emplace_back("workload.interleave", interleave);
        return all;
      };
      const Numbers numbers = checked(piped(kept, "zero_offload"));
      if (has_numbers_of_its_own(kept)) continue;
      CHECK(numbers == checked(piped("keep", "resident")));
    }
  }
}

TEST_CASE("wherever activations live, the plan trains the network of the keeping plan",
          "[policy][meaning]") {
  std::size_t turn = 0;
  for (const std::string kept : activations) {
    for (const int ranks : {1, 4}) {
      const States& s = states.at(++turn % states.size());
      const int accumulation = turn % 2 == 0 ? 1 : 3;
      INFO(kept << " / " << s.zero << " " << s.parameters << " " << s.optimizer << ", " << ranks
                << " ranks, " << accumulation << " micro-batches");
      const Numbers numbers = checked(overrides(ranks, accumulation, kept, s));
      if (has_numbers_of_its_own(kept)) continue;
      CHECK(numbers == checked(overrides(ranks, accumulation, "keep", s)));
    }
  }
}
