#include "sim/policy/layout.hpp"

#include <stdexcept>
#include <vector>

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

std::vector<int> ranks_of(const RankGroup& group) {
  std::vector<int> ranks;
  for (std::uint16_t i = 0; i < group.here; ++i) ranks.push_back(group.rank(i));
  return ranks;
}

}  // namespace

TEST_CASE("ranks are numbered tensor first, then data, then pipeline", "[layout]") {
  // 8 GPUs, t 2, p 2: data 8 / 4 = 2. Stage 0 is 0..3 with tensor pairs 01, 23; stage 1 is 4..7.
  const Layout layout({.tensor = 2, .pipeline = 2}, 1, 8, false);
  CHECK(layout.world() == 8);
  CHECK(layout.data() == 2);
  CHECK(layout.ranks() == 8);
  CHECK(layout.ranks_per_stage() == 4);
  CHECK(layout.stage_of(3) == 0);
  CHECK(layout.stage_of(4) == 1);
  CHECK(layout.first_rank(1) == 4);
  SECTION("tensor groups are neighbours") {
    const auto groups = layout.tensor_groups(1);
    REQUIRE(groups.size() == 2);
    CHECK(ranks_of(groups[0]) == std::vector{4, 5});
    CHECK(ranks_of(groups[1]) == std::vector{6, 7});
    CHECK(groups[1].size == 2);
    CHECK(groups[1].per_node == 2);
  }
  SECTION("data groups take every second rank") {
    const auto groups = layout.data_groups(1);
    REQUIRE(groups.size() == 2);
    CHECK(ranks_of(groups[0]) == std::vector{4, 6});
    CHECK(ranks_of(groups[1]) == std::vector{5, 7});
    CHECK(groups[0].stride == 2);
    CHECK(groups[0].size == 2);
    CHECK(groups[0].per_node == 2);
  }
}

TEST_CASE("without a pipeline a plan holds one node of all", "[layout]") {
  // 4 nodes of 8, t 4: 32 / 4 = 8 data-parallel ranks, two of each group on a node.
  const Layout layout({.tensor = 4}, 4, 8, false);
  CHECK(layout.ranks() == 8);
  CHECK(layout.nodes_here() == 1);
  CHECK(layout.data() == 8);
  const auto data = layout.data_groups(0);
  REQUIRE(data.size() == 4);
  CHECK(ranks_of(data[3]) == std::vector{3, 7});
  CHECK(data[3].size == 8);
  CHECK(data[3].per_node == 2);
}

TEST_CASE("a plan holds as many nodes as its stages need", "[layout]") {
  SECTION("a stage fills a node: one node of each stage") {
    // 4 nodes of 8 and p 2: a stage has 16 GPUs on two nodes, of which the plan holds one.
    const Layout layout({.tensor = 8, .pipeline = 2}, 4, 8, false);
    CHECK(layout.nodes_here() == 2);
    CHECK(layout.ranks() == 16);
    CHECK(layout.data() == 2);
    CHECK(layout.data_groups(0)[0].here == 1);
    CHECK(layout.data_groups(0)[0].per_node == 1);
  }
  SECTION("a stage is smaller than a node: several share one") {
    // 2 nodes of 8, t 2, p 8: a stage is one pair, four stages a node.
    const Layout layout({.tensor = 2, .pipeline = 8}, 2, 8, false);
    CHECK(layout.nodes_here() == 2);
    CHECK(layout.ranks() == 16);
    CHECK(layout.ranks_per_stage() == 2);
    CHECK(layout.gpus_per_node_here() == 8);
    CHECK(layout.data() == 1);
  }
}

TEST_CASE("folded, one rank stands for its tensor group", "[layout]") {
  // 2 nodes of 8, t 4: two ranks here; each data group is one rank of two on each node.
  const Layout layout({.tensor = 4}, 2, 8, true);
  CHECK(layout.ranks() == 2);
  CHECK(layout.tensor_here() == 1);
  CHECK(layout.gpus_per_node_here() == 2);
  CHECK(layout.data() == 4);
  const auto tensor = layout.tensor_groups(0);
  REQUIRE(tensor.size() == 2);
  CHECK(ranks_of(tensor[1]) == std::vector{1});
  CHECK(tensor[1].size == 4);
  CHECK(tensor[1].per_node == 4);
  const auto data = layout.data_groups(0);
  REQUIRE(data.size() == 1);
  CHECK(ranks_of(data[0]) == std::vector{0, 1});
  CHECK(data[0].size == 4);
  CHECK(data[0].per_node == 2);
  SECTION("stages too") {
    // t 8 = a node, p 2 on two nodes: a rank a stage, a node each.
    const Layout deep({.tensor = 8, .pipeline = 2}, 2, 8, true);
    CHECK(deep.ranks() == 2);
    CHECK(deep.nodes_here() == 2);
    CHECK(deep.gpus_per_node_here() == 1);
  }
}

TEST_CASE("a stage that lies across nodes is refused", "[layout]") {
  // 3 nodes of 8: p 2 gives stages of 12, a node and a half; p 4 stages of 6.
  CHECK_THROWS_AS(Layout({.pipeline = 2}, 3, 8, false), std::logic_error);
  CHECK_THROWS_AS(Layout({.pipeline = 4}, 3, 8, false), std::logic_error);
}

TEST_CASE("degrees of one are data parallelism", "[layout]") {
  for (const bool is_folded : {false, true}) {
    const Layout plain = Layout::data_parallel(4, 16), layout({}, 4, 4, is_folded);
    CHECK(layout.ranks() == plain.ranks());
    CHECK(layout.data() == plain.data());
    CHECK(layout.world() == 16);
    CHECK(layout.nodes_here() == plain.nodes_here());
    CHECK(layout.tensor_groups(0).empty());
    const RankGroup a = layout.data_groups(0).at(0), b = plain.data_groups(0).at(0);
    CHECK(ranks_of(a) == ranks_of(b));
    CHECK(ranks_of(a) == std::vector{0, 1, 2, 3});
    CHECK(a.size == b.size);
    CHECK(a.per_node == 4);
  }
}
