#include "sim/deepspeed/write.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/sim/deepspeed/files.hpp"

/// Which key of a policy becomes which key of a ds_config.json or flag of Megatron.

using namespace tidegate;
using nlohmann::json;
using test::remark_on;

namespace {

struct Written {
  json file;
  std::vector<Remark> remarks;
  MegatronFlags megatron;
};

// Four H100 with the paths nvme and pfs.
Written write(const std::string& policy, const std::string& workload = "") {
  const yaml::Value root = yaml::load_text(
      "workload: {network: {layers: 4, hidden: 512, heads: 8, vocabulary: 1000}, sequence: 128, "
      "micro_batch: 2, accumulation: 4" +
          workload + "}\nhardware: h100_4gpu_nvme_pfs\npolicy: " + policy + "\n",
      "s.yaml");
  const Scenario scenario = read_scenario(root, "s", "s.yaml");
  const DeepSpeedFile file = write_deepspeed(root, scenario);
  return {json::parse(file.json), file.remarks, megatron_flags(root, scenario, "ds.json")};
}

std::string line(const std::vector<std::string>& flags) {
  std::string text;
  for (const std::string& flag : flags) text += flag + " ";
  return text;
}

}  // namespace

TEST_CASE("the batch is of all data-parallel ranks", "[deepspeed]") {
  const json file = write("{zero: {stage: 1}}").file;
  CHECK(file["train_batch_size"] == 32);  // 2 · 4 · 4 ranks
  CHECK(file["train_micro_batch_size_per_gpu"] == 2);
  CHECK(file["gradient_accumulation_steps"] == 4);
  CHECK(file["bf16"]["enabled"] == true);
  CHECK(write("{zero: {stage: 1}}", ", tensor_parallel: 2").file["train_batch_size"] == 16);
  CHECK(write("{zero: {stage: 1}}", ", dtype: fp16").file["fp16"]["enabled"] == true);
}

TEST_CASE("ZeRO's counts are written in elements, those of stage 3 at stage 3", "[deepspeed]") {
  const json three = write("{zero: {stage: 3, prefetch_bucket_size: 7, reduce_scatter: false}}")
                         .file["zero_optimization"];
  CHECK(three["stage"] == 3);
  CHECK(three["stage3_prefetch_bucket_size"] == 7);
  CHECK(three["stage3_max_live_parameters"] == 1'000'000'000);
  CHECK(three["reduce_scatter"] == false);
  const json two = write("{zero: {stage: 2, reduce_bucket_size: 5}}").file["zero_optimization"];
  CHECK(two["reduce_bucket_size"] == 5);
  CHECK_FALSE(two.contains("stage3_prefetch_bucket_size"));
}

TEST_CASE("a swapped optimizer is written with its buffers, pipeline and aio", "[deepspeed]") {
  const Written w = write(
      "{zero: {stage: 3}, optimizer: {name: zero_infinity, path: pfs, buffer_count: 9, "
      "pipeline_write: false, aio: {block_size: 4 MiB}}}");
  const json offload = w.file["zero_optimization"]["offload_optimizer"];
  CHECK(offload["device"] == "nvme");
  CHECK(offload["nvme_path"] == "/mnt/pfs");
  CHECK(offload["buffer_count"] == 9);
  CHECK(offload["pipeline_read"] == true);
  CHECK(offload["pipeline_write"] == false);
  CHECK(w.file["zero_optimization"]["sub_group_size"] == 100'000'000);
  CHECK(w.file["aio"]["block_size"] == 4'194'304);
  CHECK(w.file["aio"]["thread_count"] == 4);
  CHECK(w.file["aio"]["intra_op_parallelism"] == 4);
  CHECK_THAT(remark_on(w.remarks, "nvme_path"), Containing("write its directory"));
  // Read ahead but not written behind: 8 buffers of 4 states each for two sub-groups.
  CHECK(remark_on(w.remarks, "buffer_count") == "none");
  const auto remark = [](const std::string& keys) {
    return remark_on(
        write("{zero: {stage: 3}, optimizer: {name: zero_infinity, path: nvme" + keys + "}}")
            .remarks,
        "buffer_count");
  };
  CHECK(remark("") == "none");
  CHECK_THAT(remark(", buffer_count: 11"),
             Containing("refused: ") &&
                 Containing("is 11, and DeepSpeed's swapper stops with fewer than 12"));
}

TEST_CASE("Twin-Flow is written as ratio, which works at stage 3 only", "[deepspeed]") {
  const std::string optimizer = "optimizer: {name: twin_flow, ratio: 0.25, pin_memory: false}}";
  const Written three = write("{zero: {stage: 3}, " + optimizer);
  CHECK(three.file["zero_optimization"]["offload_optimizer"]["ratio"] == 0.25);
  CHECK(three.file["zero_optimization"]["offload_optimizer"]["pin_memory"] == false);
  const Written two = write("{zero: {stage: 2}, " + optimizer);
  CHECK_FALSE(two.file["zero_optimization"]["offload_optimizer"].contains("ratio"));
  CHECK_THAT(remark_on(two.remarks, "ratio"), Containing("left out: "));
}

TEST_CASE("MLP-Offload is written with the keys of its fork", "[deepspeed]") {
  const Written w = write(
      "{zero: {stage: 3}, optimizer: {name: mlp_offload, paths: [nvme, pfs], cache: false, "
      "assignment: {modulo: 5}, exclusive: [pfs], buffer_count: 25}}");
  const json offload = w.file["zero_optimization"]["offload_optimizer"];
  CHECK(offload["nvme_path"] == "/mnt/nvme;/mnt/vast/pfs");
  CHECK(offload["dist_opt_ratio"] == 5);
  CHECK(offload["dist_opt_enable_caching"] == 0);
  CHECK(offload["dist_opt_grad_skip"] == 1);
  CHECK(offload["dist_opt_one_at_time"] == 1);
  CHECK_THAT(remark_on(w.remarks, "dist_opt"), Containing("refused: "));
}

// Every third sub-group is 1/3 = 0.333; wanted are 30 of 100 on pfs: 100/30 = 3.33, rounded 3.
TEST_CASE("shares become the fork's nearest integer, and the difference is said", "[deepspeed]") {
  const Written w = write(
      "{zero: {stage: 3}, optimizer: {name: mlp_offload, paths: [pfs, nvme], "
      "assignment: {shares: [30, 70]}, exclusive: false}}");
  const json offload = w.file["zero_optimization"]["offload_optimizer"];
  CHECK(offload["nvme_path"] == "/mnt/nvme;/mnt/pfs");
  CHECK(offload["dist_opt_ratio"] == 3);
  CHECK_THAT(remark_on(w.remarks, "assignment"),
             Containing("changed: ") && Containing("one sub-group in 3 to pfs, which is 0.333 of "
                                                   "them and not 0.3"));
}

TEST_CASE("parameters on files get buffers that take the largest tensor", "[deepspeed]") {
  const Written w = write("{zero: {stage: 3}, parameters: {name: nvme, path: nvme}}");
  const json offload = w.file["zero_optimization"]["offload_param"];
  CHECK(offload["device"] == "nvme");
  CHECK(offload["buffer_count"] == 5);
  CHECK(offload["max_in_cpu"] == 0);
  // 512 · 1000 elements are far below DeepSpeed's 1e8.
  CHECK(offload["buffer_size"] == 100'000'000);
  CHECK(write("{zero: {stage: 3}, parameters: host}")
            .file["zero_optimization"]["offload_param"]["device"] == "cpu");
}

TEST_CASE("what DeepSpeed cannot express is left out and said", "[deepspeed]") {
  const Written w = write(
      "{zero: {stage: 2}, pinned_allocations: exact, optimizer: {name: zero_offload, "
      "delayed_update: true}, activations: {name: ssdtrain, to: [nvme], threshold: 1024}}");
  CHECK_THAT(remark_on(w.remarks, "delayed_update"), Containing("left out: "));
  CHECK_THAT(remark_on(w.remarks, "pinned_allocations"), Containing("left out: "));
  CHECK_THAT(remark_on(w.remarks, "activations.ssdtrain"),
             Containing("left out: ") && Containing(": to, threshold"));
  CHECK_THAT(
      remark_on(
          write("{optimizer: {name: resident, algorithm: sgd, master_weights: false}}").remarks,
          "algorithm"),
      Containing("left out: "));
  CHECK_THAT(remark_on(write("{zero: {stage: 1, contiguous_gradients: true}}").remarks,
                       "contiguous_gradients"),
             Containing("left out: "));
}

// Megatron-LM's arguments; Megatron-DeepSpeed as in the launch script of MLP-Offload's artifact.
TEST_CASE("layout and recomputation are flags of Megatron", "[deepspeed]") {
  const MegatronFlags flags =
      write("{zero: {stage: 1}, activations: {name: recompute, every: 2}}",
            ", tensor_parallel: 2, pipeline_parallel: 2, sequence_parallel: true, interleave: 2")
          .megatron;
  // 4 layers in 2 stages of 2 pieces; 2 · 4 sequences on one data-parallel rank.
  CHECK(line(flags.common) ==
        "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --sequence-parallel "
        "--num-layers-per-virtual-pipeline-stage 1 --seq-length 128 --micro-batch-size 2 "
        "--global-batch-size 8 --bf16 ");
  CHECK(line(flags.megatron_lm) ==
        "--recompute-granularity full --recompute-method uniform --recompute-num-layers 2 "
        "--use-distributed-optimizer ");
  CHECK(line(flags.megatron_deepspeed) ==
        "--checkpoint-activations --deepspeed-activation-checkpointing --checkpoint-num-layers 2 "
        "--deepspeed --deepspeed_config ds.json --zero-stage 1 ");
  const MegatronFlags offload =
      write(
          "{zero: {stage: 3}, optimizer: zero_offload, activations: {name: recompute, mode: "
          "selective}}")
          .megatron;
  CHECK(line(offload.megatron_deepspeed) ==
        "--recompute-granularity selective --deepspeed --deepspeed_config ds.json --zero-stage 3 "
        "--no-pipeline-parallel --cpu-optimizer ");
  CHECK_THAT(remark_on(offload.remarks, "policy"), Containing("take Megatron-DeepSpeed"));
}
