#include "sim/deepspeed/remark.hpp"

#include "tests/catch.hpp"
#include "tests/sim/deepspeed/files.hpp"

/// What DeepSpeed refuses, changes or ignores, what is filled in, and what is not simulated.

using namespace tidegate;
using test::read;
using test::read_zero;
using test::remark_on;
using test::two_ranks;
using test::value_of;

// config_utils.py: DeepSpeedConfigModel has extra = "forbid" (DeepSpeed issue 2721, pull request
// 2004); the top level and aio are read key by key.
TEST_CASE("an unknown key stops DeepSpeed in some sections and is never seen in others",
          "[deepspeed]") {
  const auto remarks = read_zero(R"({"stage": 3, "sub_group_sise": 1e8,
                    "offload_optimizer": {"device": "cpu", "pin_memry": true}})",
                                 R"(, "train_batchsize": 4)")
                           .remarks;
  CHECK(remark_on(remarks, "sub_group_sise") ==
        "refused: zero_optimization.sub_group_sise: unknown key, at which DeepSpeed stops; did "
        "you mean 'sub_group_size'?");
  CHECK_THAT(remark_on(remarks, "pin_memry"),
             Containing("refused: ") && Containing("'pin_memory'?"));
  CHECK_THAT(remark_on(remarks, "train_batchsize"), Containing("ignored: ") &&
                                                        Containing("never looks at") &&
                                                        Containing("'train_batch_size'?"));
}

TEST_CASE("an unknown key of aio is never seen", "[deepspeed]") {
  const auto remarks = read_zero(R"({"stage": 3,
      "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}})",
                                 R"(, "aio": {"block_sise": 4096})")
                           .remarks;
  CHECK_THAT(remark_on(remarks, "block_sise"),
             Containing("ignored: aio.block_sise: ") && Containing("'block_size'?"));
}

TEST_CASE("a remark has the place of what it is about", "[deepspeed]") {
  const auto remarks =
      read("{\"train_batch_size\": 2,\n  \"zero_optimisation\": {}, \"bf16\": {}}").remarks;
  REQUIRE(remarks.size() == 1);
  CHECK(to_text(remarks.front().where) == "ds.json:2:3");
}

TEST_CASE("keys with one fate share a remark", "[deepspeed]") {
  const auto remarks = read_zero(R"({"stage": 2, "overlap_comm": true,
      "stage3_max_live_parameters": 1e9, "stage3_max_reuse_distance": 1e9})")
                           .remarks;
  REQUIRE(remarks.size() == 1);
  CHECK(to_text(remarks.front()) ==
        "ignored: zero_optimization.stage3_max_live_parameters, "
        "zero_optimization.stage3_max_reuse_distance: has no effect at stage 2");
}

TEST_CASE("what works at stage 3 only is ignored below", "[deepspeed]") {
  const DeepSpeedRun run = read_zero(R"({"stage": 2, "sub_group_size": 1e8,
      "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu", "ratio": 0.5}})");
  CHECK_THAT(remark_on(run.remarks, "offload_param"),
             Containing("ignored: ") && Containing("parameters stay on the GPU"));
  CHECK_THAT(remark_on(run.remarks, "ratio"), Containing("ignored: "));
  CHECK_THAT(remark_on(run.remarks, "sub_group_size"), Containing("ignored: "));
  CHECK(value_of(run.policy, "parameters.name") == "resident");
  CHECK(value_of(run.policy, "optimizer.name") == "zero_offload");
}

// deepspeed/runtime/zero/stage_1_and_2.py: cpu_offload is any device but none.
TEST_CASE("nvme below stage 3 is host memory", "[deepspeed]") {
  const DeepSpeedRun run =
      read_zero(R"({"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}})",
                R"(, "aio": {"block_size": 4096})");
  CHECK(value_of(run.policy, "optimizer.name") == "zero_offload");
  CHECK_THAT(remark_on(run.remarks, "offload_optimizer"),
             Containing("changed: ") && Containing("states stay in host memory"));
  CHECK(remark_on(run.remarks, "aio") == "ignored: aio: nothing is on nvme");
}

TEST_CASE("offload without ZeRO is ignored", "[deepspeed]") {
  const DeepSpeedRun run = read_zero(R"({"stage": 0, "offload_optimizer": {"device": "cpu"}})");
  CHECK(value_of(run.policy, "optimizer.name") == "resident");
  CHECK_THAT(remark_on(run.remarks, "offload_optimizer"),
             Containing("ignored: ") && Containing("needs stage 1, 2 or 3"));
}

// zero/config.py: deprecated fields with new_param; cpu_offload_use_pin_memory sets nothing.
TEST_CASE("deprecated keys become today's", "[deepspeed]") {
  const DeepSpeedRun run = read_zero(R"({"stage": 3, "cpu_offload": true,
      "cpu_offload_param": true, "cpu_offload_use_pin_memory": true})");
  CHECK(value_of(run.policy, "optimizer.name") == "zero_offload");
  CHECK(value_of(run.policy, "optimizer.pin_memory") == "false");
  CHECK(value_of(run.policy, "parameters.name") == "host");
  CHECK_THAT(remark_on(run.remarks, "cpu_offload"),
             Containing("changed: ") && Containing("offload_optimizer with device cpu"));
  CHECK_THAT(remark_on(run.remarks, "cpu_offload_use_pin_memory"), Containing("ignored: "));
  CHECK(value_of(read_zero(R"({"stage": 2, "cpu_offload": false})").policy, "optimizer.name") ==
        "resident");
  const DeepSpeedRun oldest = read_zero("true");
  CHECK(value_of(oldest.policy, "zero.stage") == "1");
  CHECK_THAT(remark_on(oldest.remarks, "zero_optimization"), Containing("changed: "));
}

// swap_tensor/partitioned_param_swapper.py, get_buffer: "More elements … than buffer size".
TEST_CASE("a parameter buffer below the largest tensor's part is refused", "[deepspeed]") {
  const std::string zero = R"({"stage": 3, "offload_param": {"device": "nvme",
      "nvme_path": "/nvme", "buffer_size": 1e8, "max_in_cpu": 0}})";
  DeepSpeedSetting setting = two_ranks();
  setting.largest_tensor = 200'000'000;  // 1e8 on each of two ranks
  CHECK_THAT(remark_on(read_zero(zero, "", setting).remarks, "buffer_size"),
             Containing("not simulated: "));
  setting.largest_tensor = 200'000'001;
  CHECK(remark_on(read_zero(zero, "", setting).remarks, "buffer_size") ==
        "refused: zero_optimization.offload_param.buffer_size: is 100000000 elements, and the "
        "largest tensor's part of a rank has 100000001; write that or more");
}

// pipelined_optimizer_swapper.py: "ran out of swap buffers".
TEST_CASE("too few swap buffers for the pipeline are refused", "[deepspeed]") {
  const auto remark = [](const std::string& keys) {
    return remark_on(read_zero(R"({"stage": 3, "offload_optimizer": {"device": "nvme",
        "nvme_path": "/nvme")" +
                               keys + "}}")
                         .remarks,
                     "buffer_count");
  };
  CHECK(remark("") == "none");  // 4 buffers, 4 states, one sub-group at a time
  CHECK(remark(R"(, "buffer_count": 12, "pipeline_read": true, "pipeline_write": true)") == "none");
  CHECK_THAT(remark(R"(, "buffer_count": 11, "pipeline_read": true, "pipeline_write": true)"),
             Containing("refused: ") && Containing("is 11, and the swapper holds up to 12"));
  CHECK_THAT(remark(R"(, "pipeline_read": true)"),
             Containing("is 4, and the swapper holds up to 8"));
}

TEST_CASE("a number in quotes is read, and refused by DeepSpeed when it has an exponent",
          "[deepspeed]") {
  const DeepSpeedRun run = read_zero(
      R"({"stage": 3, "reduce_bucket_size": "5e8", "stage3_prefetch_bucket_size": "50000000"})");
  CHECK(value_of(run.policy, "zero.reduce_bucket_size") == "500000000");
  CHECK_THAT(remark_on(run.remarks, "reduce_bucket_size"),
             Containing("refused: ") && Containing("leave the quotes out"));
  CHECK(remark_on(run.remarks, "prefetch_bucket_size") == "none");
}

TEST_CASE("a directory that is no path of the profile is taken for one", "[deepspeed]") {
  const auto remarks = [](const std::string& path) {
    return read_zero(R"({"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": ")" +
                     path + R"("}})")
        .remarks;
  };
  CHECK(remark_on(remarks("/mnt/pfs/run"), "nvme_path") == "none");
  CHECK_THAT(remark_on(remarks("/local/nvme0/"), "nvme_path"),
             Containing("filled: ") && Containing("/local/nvme0/ is taken to be the storage path "
                                                  "nvme of the profile"));
  DeepSpeedSetting setting = two_ranks();
  setting.paths.clear();
  try {
    read_zero(R"({"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/n"}})", "",
              setting);
    FAIL("a node without drives was accepted");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), Containing("ds.json:2:88: ") &&
                                 Containing("needs a storage path, and the profile has none"));
  }
}

TEST_CASE("what is not simulated is said", "[deepspeed]") {
  const DeepSpeedRun run = read_zero(
      R"({"stage": 2, "overlap_comm": false, "zenflow": {"topk_ratio": 0.1},
          "allgather_partitions": false, "round_robin_gradients": false,
          "offload_optimizer": {"device": "cpu", "super_offload": true}})",
      R"(, "activation_checkpointing": {"cpu_checkpointing": true, "profile": true},
          "optimizer": {"type": "Lamb"}, "data_types": {"grad_accum_dtype": "fp32"})");
  for (const char* key : {"overlap_comm", "zenflow", "allgather_partitions", "super_offload",
                          "cpu_checkpointing", "optimizer.type", "grad_accum_dtype"}) {
    CHECK_THAT(remark_on(run.remarks, key), Containing("not simulated: "));
  }
  for (const char* key : {"round_robin_gradients", "profile"})
    CHECK(remark_on(run.remarks, key) == "none");
  CHECK(value_of(run.policy, "optimizer.name") == "zero_offload");
  // overlap_comm_valid: true by default at stage 3, false below.
  CHECK_THAT(remark_on(read_zero(R"({"stage": 1})").remarks, "overlap_comm"),
             Containing("is false by default below stage 3"));
  CHECK(remark_on(read_zero(R"({"stage": 3})").remarks, "overlap_comm") == "none");
}

TEST_CASE("max_grad_norm of the optimizer is refused", "[deepspeed]") {
  CHECK_THAT(remark_on(read(R"({"train_batch_size": 2, "optimizer": {"type": "Adam",
                        "params": {"lr": 1e-4, "max_grad_norm": 1.0}}})")
                           .remarks,
                       "max_grad_norm"),
             Containing("refused: ") && Containing("write gradient_clipping at the top level"));
}

TEST_CASE("a file without a batch is refused", "[deepspeed]") {
  CHECK_THAT(remark_on(read("{}").remarks, "train_batch_size"), Containing("refused: "));
}

// The fork's keys: extra fields for DeepSpeed. Its lock: swap_tensor/utils.py at fb30366f.
TEST_CASE("keys of MLP-Offload's fork are refused by DeepSpeed itself", "[deepspeed]") {
  const auto remarks = read_zero(R"({"stage": 3, "offload_optimizer": {"device": "nvme",
      "nvme_path": "/nvme;/pfs", "buffer_count": 24, "dist_opt_ratio": 2,
      "dist_opt_one_at_time": 1}})")
                           .remarks;
  CHECK_THAT(remark_on(remarks, "dist_opt_ratio"),
             Containing("refused: ") && Containing("MLP-Offload's fork"));
  CHECK_THAT(remark_on(remarks, "nvme_path"),
             Containing("ignored: ") && Containing("'vast' in their name, and none has it"));
}

// DeepSpeed pull request 7056.
TEST_CASE("thread_count has another name in later versions", "[deepspeed]") {
  const DeepSpeedRun run =
      read_zero(R"({"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}})",
                R"(, "aio": {"thread_count": 4})");
  CHECK(value_of(run.policy, "optimizer.aio.thread_count") == "4");
  CHECK_THAT(remark_on(run.remarks, "thread_count"),
             Containing("ignored: ") && Containing("intra_op_parallelism"));
}
