#include "sim/search/space.hpp"

#include <algorithm>

#include "sim/search/evaluate.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

const std::string scenarios = std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/";
const std::vector<std::string> shipped = {"llama2_7b_zero_offload_4090", "llama31_8b_h200",
                                          "mixtral_zero_infinity_a100",  "mlp_offload_70b",
                                          "qwen25_7b_twin_flow_a100",    "ssdtrain_bert_a100",
                                          "ssdtrain_mlp_offload_a100",   "zero_infinity_70b"};

Space space_of(const Evaluator& evaluator) {
  return default_space(evaluator.scenario({}), evaluator.values());
}

}  // namespace

TEST_CASE("commas divide values outside brackets and quotes", "[space]") {
  const yaml::Value nothing;
  const Axis axis = read_axis("a.b={x: [1, 2], y: 3}, [4, 5] ,'6,7',8", nothing);
  CHECK(axis.name == "a.b");
  REQUIRE(axis.options.size() == 4);
  CHECK(axis.options[0].tag == "{x: [1, 2], y: 3}");
  CHECK(axis.options[1].tag == "[4, 5]");
  CHECK(axis.options[2].tag == "'6,7'");
  CHECK(axis.options[3].sets == std::vector<Override>{{"a.b", "8"}});
}

TEST_CASE("a grid is every combination, and knows what the scenario has", "[space]") {
  const yaml::Value values = yaml::load_text("{a: 1, b: {c: x}}", "test");
  const Space space = grid_of({"a=1,2,3", "b.c=x,y"}, values);
  const auto picks = space.crossed_picks();
  REQUIRE(picks.size() == 6);
  CHECK(space.size() == 6);
  CHECK(space.count_changes({0, 0}) == 0);
  CHECK(space.changes_of({2, 1}) == std::vector<std::string>{"a", "b.c"});
  CHECK(space.sets_of({1, 0}) == std::vector<Override>{{"a", "2"}, {"b.c", "x"}});
}

TEST_CASE("what is no axis is refused with what would be right", "[space]") {
  const yaml::Value nothing;
  const auto refused = [&](const std::vector<std::string>& texts) {
    CHECK_THROWS_AS(grid_of(texts, nothing), InputError);
  };
  refused({"buffer_count"});
  refused({"=1,2"});
  refused({"a="});
  refused({"a=1,,2"});
  refused({"a=1,1"});
  refused({"a=1", "a=2"});
}

TEST_CASE("every option of the usual space is a configuration somewhere", "[space]") {
  for (const std::string& name : shipped) {
    INFO(name);
    const Evaluator evaluator(scenario_source(scenarios + name + ".yaml"), {});
    const Space space = space_of(evaluator);
    CHECK(space.axes[0].options[0].sets.empty());
    CHECK(space.sets_of(space.today()).empty());
    // Each refined option on the first crossed combination where it applies and today's is read.
    const auto crossed = space.crossed_picks();
    for (std::size_t a = space.crossed; a < space.axes.size(); ++a) {
      const auto at = std::ranges::find_if(crossed, [&](const Picks& p) {
        return space.applies(a, p) && evaluator.screen(space.sets_of(p)).refusal.empty();
      });
      if (at == crossed.end()) continue;
      for (std::uint16_t o = 0; o < space.axes[a].options.size(); ++o) {
        Picks picks(*at);
        picks[a] = o;
        INFO(space.axes[a].name << " option " << o);
        CHECK(evaluator.screen(space.sets_of(picks)).refusal == "");
      }
    }
  }
}

TEST_CASE("the batch is divided at the same tokens per iteration", "[space]") {
  const Evaluator evaluator(scenario_source(scenarios + "llama31_8b_h200.yaml"), {});
  const Space space = space_of(evaluator);
  const auto batch = std::ranges::find(space.axes, "batch and parallelism", &Axis::name);
  REQUIRE(batch != space.axes.end());
  CHECK(batch->options.size() > 4);
  for (const Option& option : batch->options) {
    const Scenario s = evaluator.scenario(option.sets);
    const Workload& w = s.workload;
    // 8 GPUs, 1 x 4 sequences each: 32.
    const std::int64_t ranks = 8 / (w.tensor_parallel * w.pipeline_parallel);
    CHECK(ranks * w.micro_batch * w.accumulation == 32);
  }
}

TEST_CASE("only some choices can be asked for", "[space]") {
  const Evaluator evaluator(scenario_source(scenarios + "mlp_offload_70b.yaml"), {});
  const Scenario scenario = evaluator.scenario({});
  const Space space = default_space(scenario, evaluator.values(), {"buffer_count", "cache"});
  // policy.optimizer.buffer_count: 8 values, of which 25 is the scenario's; cache true and false;
  // the buffers of parameters apply nowhere.
  CHECK(space.size() == 16);
  CHECK(space.crossed == space.axes.size());
  CHECK_THROWS_AS(default_space(scenario, evaluator.values(), {"bufer_count"}), InputError);
}
