#include "sim/policy/sub_groups.hpp"

#include <numeric>

#include "sim/graph/workload.hpp"
#include "sim/policy/swapped_optimizer.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

// The networks of the MLP-Offload logs: Megatron layout, 4 kv heads, vocabulary padded to 50304.
LayerGraph published(std::int64_t layers, std::int64_t hidden, std::int64_t ffn) {
  Workload w;
  w.network = {.layers = layers,
               .hidden = hidden,
               .ffn = ffn,
               .heads = hidden / 128,
               .kv_heads = 4,
               .head_dim = 128,
               .vocabulary = 50304};
  w.network.has_gated_ffn = true;
  w.network.has_fused_projections = true;
  w.network.activation = Activation::silu;
  w.sequence = 2048;
  return build_graph(w);
}

std::vector<SubGroup> groups_of(const LayerGraph& graph) {
  return pack_sub_groups(parameters_in_order(graph), 4, 100'000'000);
}

}  // namespace

TEST_CASE("sub-groups have the counts and largest sizes of the published logs", "[policy]") {
  // log headers: sub-groups per rank and largest_numel, dp 4, sub_group_size 1e8
  CHECK(groups_of(published(128, 5120, 20480)).size() == 97);
  CHECK(largest(groups_of(published(128, 5120, 20480))) == 152047360);
  CHECK(groups_of(published(64, 8192, 21824)).size() == 66);
  CHECK(largest(groups_of(published(64, 8192, 21824))) == 169742336);
  CHECK(groups_of(published(80, 8192, 28672)).size() == 82);
  CHECK(largest(groups_of(published(80, 8192, 28672))) == 211816448);
  CHECK(groups_of(published(124, 8192, 28672)).size() == 126);
  CHECK(groups_of(published(96, 10240, 28672)).size() == 193);
  CHECK(largest(groups_of(published(96, 10240, 28672))) == 202181120);
}

TEST_CASE("sub-groups close as soon as they reach the size and so overshoot it", "[policy]") {
  // world 2: slices 3, 3, 1 (rounded up), 4; size 5: {3+3}, {1+4}
  const std::vector<Parameter> tensors = {{"a", 6}, {"b", 5}, {"c", 1}, {"d", 8}};
  const auto groups = pack_sub_groups(tensors, 2, 5);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].elements == 6);
  CHECK(groups[1].elements == 5);
}

TEST_CASE("every third sub-group to the second path gives the logged parameter shares",
          "[policy]") {
  const auto share = [](const LayerGraph& graph) {
    const auto groups = groups_of(graph);
    const auto path = assign_modulo(groups.size(), 3);
    double second = 0, all = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      all += static_cast<double>(groups[i].elements);
      if (path[i] == 1) second += static_cast<double>(groups[i].elements);
    }
    return second / all;
  };
  CHECK(share(published(128, 5120, 20480)) == Approx(0.4148).epsilon(1e-3));
  CHECK(share(published(64, 8192, 21824)) == Approx(0.3313).epsilon(1e-3));
  CHECK(share(published(96, 10240, 28672)) == Approx(0.3387).epsilon(1e-3));
}

TEST_CASE("shares are met to within one sub-group, for any number of paths", "[policy]") {
  std::vector<SubGroup> groups;
  for (std::int64_t i = 0; i < 60; ++i) groups.push_back({100 + i % 7});
  const std::vector<double> shares = {5, 3, 2, 0};
  const auto path = assign_shares(groups, shares);
  std::vector<double> placed(4, 0);
  double all = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    placed[path[i]] += static_cast<double>(groups[i].elements);
    all += static_cast<double>(groups[i].elements);
  }
  for (std::size_t p = 0; p < 4; ++p) CHECK(std::abs(placed[p] - all * shares[p] / 10) <= 106);
  CHECK(placed[3] == 0);
}

TEST_CASE("the cache holds a third of the buffers, as the flushed counts of the logs say",
          "[policy]") {
  // logs: 28, 25, 18 buffers per path keep 9, 8, 6 sub-groups per path
  CHECK(cached_per_path(28, true) == 9);
  CHECK(cached_per_path(25, true) == 8);
  CHECK(cached_per_path(18, true) == 6);
  CHECK(cached_per_path(28, false) == 6);
  CHECK(cached_per_path(3, false) == 0);
}
