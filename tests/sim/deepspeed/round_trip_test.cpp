#include <filesystem>

#include "sim/deepspeed/read.hpp"
#include "sim/deepspeed/write.hpp"
#include "tests/catch.hpp"
#include "tests/sim/deepspeed/files.hpp"

using namespace tidegate;
namespace fs = std::filesystem;

namespace {

// A tree in one line, keys in order, without places.
std::string flat(const yaml::Value& value) {
  std::string text = value.text;
  for (const yaml::Entry& entry : value.entries)
    text += entry.key + ": " + flat(entry.value) + "; ";
  for (const yaml::Value& item : value.items) text += flat(item) + ", ";
  return value.kind == yaml::Value::Kind::map ? "{" + text + "}" : text;
}

std::string summary(const DeepSpeedRun& run) {
  return std::to_string(run.micro_batch) + " " + std::to_string(run.accumulation) + " " +
         run.dtype + " " + flat(run.policy);
}

// Four H100 with the paths nvme and pfs; a small Llama, of which only sizes for "auto" matter.
yaml::Value scenario_with(const DeepSpeedRun& run) {
  yaml::Value root = yaml::load_text(
      "workload: {network: {layers: 2, hidden: 512, heads: 8, vocabulary: 1000}, sequence: 128}\n"
      "hardware: h100_4gpu_nvme_pfs\npolicy: {}\n",
      "scenario.yaml");
  yaml::set(root, "workload.micro_batch", std::to_string(run.micro_batch), {});
  yaml::set(root, "workload.accumulation", std::to_string(run.accumulation), {});
  yaml::set(root, "workload.dtype", run.dtype, {});
  for (yaml::Entry& entry : root.entries) {
    if (entry.key == "policy") entry.value = run.policy;
  }
  return root;
}

DeepSpeedRun again(const DeepSpeedRun& run, const DeepSpeedSetting& setting) {
  const yaml::Value root = scenario_with(run);
  const Scenario scenario = read_scenario(root, "s", "scenario.yaml");
  return read_deepspeed(yaml::load_text(write_deepspeed(root, scenario).json, "out.json"), setting);
}

const DeepSpeedSetting setting = {.data_parallel = 4,
                                  .micro_batch = {},
                                  .accumulation = {},
                                  .dtype = {},
                                  .hidden = 512,
                                  .largest_tensor = 0,
                                  .paths = {"nvme", "pfs"}};

}  // namespace

TEST_CASE("read, written and read again, a file in use means the same", "[deepspeed]") {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(TIDEGATE_SOURCE_DIR "/tests/data/ds_configs")) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    INFO(entry.path().filename().string());
    const DeepSpeedRun first = read_deepspeed(yaml::load_file(entry.path().string()), setting);
    const DeepSpeedRun second = again(first, setting);
    CHECK(summary(second) == summary(first));
    // What is written says everything by today's names: nothing is refused or changed.
    for (const Remark& r : second.remarks)
      CHECK((r.kind != RemarkKind::refused && r.kind != RemarkKind::changed));
  }
  CHECK(files == 7);
}

TEST_CASE("read, written and read again, a policy on files means the same", "[deepspeed]") {
  for (const char* zero :
       {R"({"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/a/pfs",
            "buffer_count": 12, "pipeline_read": true, "pipeline_write": true},
            "offload_param": {"device": "nvme", "nvme_path": "/a/nvme", "buffer_count": 6}})",
        R"({"stage": 3, "sub_group_size": 1e8, "reduce_scatter": false,
            "offload_optimizer": {"device": "nvme", "nvme_path": "/local/nvme;/vast/pfs",
            "buffer_count": 25, "dist_opt_enable_caching": 1, "dist_opt_grad_skip": 1,
            "dist_opt_ratio": 3, "dist_opt_one_at_time": 1}})",
        R"({"stage": 1, "reduce_bucket_size": 1e8})"}) {
    INFO(zero);
    const DeepSpeedRun first =
        test::read_zero(zero, R"(, "aio": {"block_size": 524288, "queue_depth": 32})", setting);
    CHECK(summary(again(first, setting)) == summary(first));
  }
}
