#include "sim/deepspeed/read.hpp"

#include "tests/catch.hpp"
#include "tests/sim/deepspeed/files.hpp"

/// Which key of a ds_config.json becomes which key of a policy. Meanings are those of DeepSpeed's
/// sources, named per case.

using namespace tidegate;
using test::read;
using test::read_zero;
using test::remark_on;
using test::two_ranks;
using test::value_of;

namespace {

std::string batch(const std::string& keys, const DeepSpeedSetting& setting = two_ranks()) {
  const DeepSpeedRun run = read("{" + keys + "}", setting);
  return std::to_string(run.micro_batch) + " x " + std::to_string(run.accumulation);
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

// deepspeed/runtime/config.py, _set_batch_related_parameters; on two ranks.
TEST_CASE("what is missing of the batch follows from the rest", "[deepspeed]") {
  const std::string all = R"("train_batch_size": 16)";
  const std::string micro = R"("train_micro_batch_size_per_gpu": 4)";
  const std::string steps = R"("gradient_accumulation_steps": 8)";
  CHECK(batch(all + "," + micro) == "4 x 2");  // 16 / (4 · 2)
  CHECK(batch(all + "," + steps) == "1 x 8");  // 16 / (8 · 2)
  CHECK(batch(all) == "8 x 1");                // 16 / 2
  CHECK(batch(micro) == "4 x 1");
  CHECK(batch(micro + "," + steps) == "4 x 8");
  CHECK(batch(R"("train_batch_size": 64,)" + micro + "," + steps) == "4 x 8");
}

TEST_CASE("auto in the batch is what the run says, else the trainer's default", "[deepspeed]") {
  const std::string automatic =
      R"("train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
         "gradient_accumulation_steps": "auto")";
  // per_device_train_batch_size of TrainingArguments is 8, gradient_accumulation_steps 1.
  CHECK(batch(automatic) == "8 x 1");
  CHECK_THAT(remark_on(read("{" + automatic + "}").remarks, "train_micro_batch_size_per_gpu"),
             Containing("filled: ") && Containing("auto is 8 here, TrainingArguments'"));
  CHECK_THAT(remark_on(read("{" + automatic + "}").remarks, "train_batch_size"),
             Containing("auto is 16 here"));  // 8 · 1 · 2
  DeepSpeedSetting setting = two_ranks();
  setting.micro_batch = 2;
  setting.accumulation = 4;
  CHECK(batch(automatic, setting) == "2 x 4");
  CHECK(batch(R"("train_batch_size": 32)", setting) == "2 x 8");  // 32 / (2 · 2)
}

TEST_CASE("a batch that does not divide is a located error", "[deepspeed]") {
  CHECK_THAT(error_of(R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 4})"),
             Containing("ds.json:1:22: train_batch_size: is 12, which 4 sequences on 2 "
                        "data-parallel ranks do not divide; write a multiple of 8"));
  CHECK_THAT(error_of(R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 4,
                          "gradient_accumulation_steps": 2})"),
             Containing("4 sequences x 2 steps x 2 data-parallel ranks are 16; write 16 or auto"));
}

TEST_CASE("the data type is the precision that is enabled", "[deepspeed]") {
  const std::string one = R"({"train_batch_size": 2)";
  CHECK(read(one + R"(, "bf16": {"enabled": true}})").dtype == "bf16");
  CHECK(read(one + R"(, "fp16": {"enabled": true}, "bf16": {"enabled": false}})").dtype == "fp16");
  CHECK(read(one + "}").dtype == "fp32");
  CHECK_THAT(remark_on(read(one + "}").remarks, "bf16, fp16"),
             Containing("filled: ") && Containing("fp32"));
  CHECK(remark_on(read(one + R"(, "bf16": {"enabled": false}})").remarks, "bf16, fp16") == "none");
  const DeepSpeedRun run =
      read(one + R"(, "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}})");
  CHECK(run.dtype == "bf16");
  CHECK_THAT(remark_on(run.remarks, "bf16"), Containing("bf16 is assumed here"));
  CHECK_THAT(error_of(one + R"(, "fp16": {"enabled": true}, "bf16": {"enabled": true}})"),
             Containing("fp16: is enabled beside bf16"));
}

// deepspeed/runtime/zero/config.py: 5e8, 5e7, 1e5, 1e9 and 1e9 elements by default.
TEST_CASE("counts are elements, with DeepSpeed's defaults", "[deepspeed]") {
  const DeepSpeedRun usual = read_zero(R"({"stage": 3})");
  CHECK(value_of(usual.policy, "zero.stage") == "3");
  CHECK(value_of(usual.policy, "zero.reduce_bucket_size") == "500000000");
  CHECK(value_of(usual.policy, "zero.prefetch_bucket_size") == "50000000");
  CHECK(value_of(usual.policy, "zero.param_persistence_threshold") == "100000");
  CHECK(value_of(usual.policy, "zero.max_live_parameters") == "1000000000");
  CHECK(value_of(usual.policy, "zero.max_reuse_distance") == "1000000000");
  CHECK(value_of(usual.policy, "zero.reduce_scatter") == "true");
  const DeepSpeedRun given = read_zero(
      R"({"stage": 3, "reduce_bucket_size": 2e8, "stage3_prefetch_bucket_size": 1e7,
          "stage3_param_persistence_threshold": 1e4, "stage3_max_live_parameters": 3e9,
          "max_reuse_distance": 2e9, "reduce_scatter": false})");
  CHECK(value_of(given.policy, "zero.reduce_bucket_size") == "200000000");
  CHECK(value_of(given.policy, "zero.prefetch_bucket_size") == "10000000");
  CHECK(value_of(given.policy, "zero.param_persistence_threshold") == "10000");
  CHECK(value_of(given.policy, "zero.max_live_parameters") == "3000000000");
  CHECK(value_of(given.policy, "zero.max_reuse_distance") == "2000000000");
  CHECK(value_of(given.policy, "zero.reduce_scatter") == "false");
}

// transformers, integrations/deepspeed.py, trainer_config_finalize: h², 0.9 h², 10 h.
TEST_CASE("auto in buckets is what the Hugging Face Trainer computes", "[deepspeed]") {
  DeepSpeedSetting setting = two_ranks();
  setting.hidden = 4096;
  const std::string zero =
      R"({"stage": 3, "reduce_bucket_size": "auto", "stage3_prefetch_bucket_size": "auto",
          "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": "auto"})";
  const DeepSpeedRun run = read_zero(zero, "", setting);
  CHECK(value_of(run.policy, "zero.reduce_bucket_size") == "16777216");    // 4096²
  CHECK(value_of(run.policy, "zero.prefetch_bucket_size") == "15099494");  // 0.9 · 4096², cut
  CHECK(value_of(run.policy, "zero.param_persistence_threshold") == "40960");
  CHECK_THAT(remark_on(run.remarks, "prefetch_bucket_size"),
             Containing("auto is 15099494 with the Hugging Face Trainer: 0.9 x hidden"));
  // The trainer fills three keys only; config_utils.py drops other "auto"s.
  CHECK(value_of(run.policy, "zero.max_live_parameters") == "1000000000");
  CHECK_THAT(remark_on(run.remarks, "max_live_parameters"),
             Containing("left to DeepSpeed's default 1000000000"));
  CHECK(value_of(read_zero(zero).policy, "zero.reduce_bucket_size") == "500000000");
}

// deepspeed/runtime/zero/offload_config.py: not pinned, ratio 1; sub_group_size 1e9.
TEST_CASE("offload_optimizer with device cpu is zero_offload", "[deepspeed]") {
  const DeepSpeedRun two =
      read_zero(R"({"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true}})");
  CHECK(value_of(two.policy, "optimizer.name") == "zero_offload");
  CHECK(value_of(two.policy, "optimizer.pin_memory") == "true");
  CHECK(value_of(two.policy, "optimizer.sub_group_size") == "absent");
  CHECK(value_of(two.policy, "parameters.name") == "resident");
  const DeepSpeedRun three =
      read_zero(R"({"stage": 3, "offload_optimizer": {"device": "cpu"}, "sub_group_size": 2e8})");
  CHECK(value_of(three.policy, "optimizer.pin_memory") == "false");
  CHECK(value_of(three.policy, "optimizer.sub_group_size") == "200000000");
  CHECK(value_of(read_zero(R"({"stage": 3, "offload_optimizer": {"device": "none"}})").policy,
                 "optimizer.name") == "resident");
}

TEST_CASE("ratio at stage 3 is Twin-Flow's share on the host", "[deepspeed]") {
  const DeepSpeedRun run =
      read_zero(R"({"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.1}})");
  CHECK(value_of(run.policy, "optimizer.name") == "twin_flow");
  CHECK(value_of(run.policy, "optimizer.ratio") == "0.1");
  CHECK(value_of(run.policy, "optimizer.sub_group_size") == "1000000000");
  CHECK(value_of(
            read_zero(R"({"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 1}})").policy,
            "optimizer.name") == "zero_offload");
}

// offload_config.py: 4 buffers, not pipelined. swap_tensor/constants.py: 1 MiB, 8, 1.
TEST_CASE("offload_optimizer with device nvme is zero_infinity", "[deepspeed]") {
  const DeepSpeedRun usual = read_zero(
      R"({"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/local/nvme0"}})");
  CHECK(value_of(usual.policy, "optimizer.name") == "zero_infinity");
  CHECK(value_of(usual.policy, "optimizer.path") == "nvme");
  CHECK(value_of(usual.policy, "optimizer.sub_group_size") == "1000000000");
  CHECK(value_of(usual.policy, "optimizer.buffer_count") == "4");
  CHECK(value_of(usual.policy, "optimizer.pipeline_read") == "false");
  CHECK(value_of(usual.policy, "optimizer.pipeline_write") == "false");
  CHECK(value_of(usual.policy, "optimizer.aio.block_size") == "1048576 B");
  CHECK(value_of(usual.policy, "optimizer.aio.queue_depth") == "8");
  CHECK(value_of(usual.policy, "optimizer.aio.thread_count") == "1");
  const DeepSpeedRun given = read_zero(
      R"({"stage": 3, "sub_group_size": 1e8, "offload_optimizer": {"device": "nvme",
          "nvme_path": "/scratch/pfs", "buffer_count": 12, "pipeline_read": 1,
          "pipeline_write": true}})",
      R"(, "aio": {"block_size": 2097152, "queue_depth": 16, "intra_op_parallelism": 4})");
  CHECK(value_of(given.policy, "optimizer.path") == "pfs");
  CHECK(value_of(given.policy, "optimizer.sub_group_size") == "100000000");
  CHECK(value_of(given.policy, "optimizer.buffer_count") == "12");
  CHECK(value_of(given.policy, "optimizer.pipeline_read") == "true");
  CHECK(value_of(given.policy, "optimizer.aio.block_size") == "2097152 B");
  CHECK(value_of(given.policy, "optimizer.aio.queue_depth") == "16");
  CHECK(value_of(given.policy, "optimizer.aio.thread_count") == "4");
}

TEST_CASE("offload_param says where parameters live at stage 3", "[deepspeed]") {
  CHECK(value_of(read_zero(R"({"stage": 3, "offload_param": {"device": "cpu"}})").policy,
                 "parameters.name") == "host");
  const DeepSpeedRun run = read_zero(
      R"({"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/d", "buffer_count": 7}})");
  CHECK(value_of(run.policy, "parameters.name") == "nvme");
  CHECK(value_of(run.policy, "parameters.path") == "nvme");
  CHECK(value_of(run.policy, "parameters.buffer_count") == "7");
  CHECK(value_of(run.policy, "optimizer.name") == "resident");
}

// Launch script of the artifact of arXiv 2509.02480.
TEST_CASE("keys of MLP-Offload's fork are mlp_offload", "[deepspeed]") {
  const DeepSpeedRun run = read_zero(
      R"({"stage": 3, "sub_group_size": 1e8, "offload_optimizer": {"device": "nvme",
          "nvme_path": "/local/nvme;/vast/pfs", "buffer_count": 25, "pipeline_write": 1,
          "pipeline_read": 1, "pin_memory": true, "dist_opt_enable_caching": 1,
          "dist_opt_grad_skip": 1, "dist_opt_ratio": 3, "dist_opt_one_at_time": 1}})");
  CHECK(value_of(run.policy, "optimizer.name") == "mlp_offload");
  CHECK(value_of(run.policy, "optimizer.paths") == "nvme pfs");
  CHECK(value_of(run.policy, "optimizer.assignment.modulo") == "3");
  CHECK(value_of(run.policy, "optimizer.exclusive") == "pfs");
  CHECK(value_of(run.policy, "optimizer.cache") == "true");
  CHECK(value_of(run.policy, "optimizer.delayed_gradients") == "true");
  CHECK(value_of(run.policy, "optimizer.buffer_count") == "25");
  // With every switch off the fork is DeepSpeed.
  const DeepSpeedRun off = read_zero(
      R"({"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/local/nvme",
          "dist_opt_enable_caching": 0, "dist_opt_grad_skip": 0, "dist_opt_ratio": 0}})");
  CHECK(value_of(off.policy, "optimizer.name") == "zero_infinity");
}

TEST_CASE("wrong types and values of a ds_config are located errors", "[deepspeed]") {
  CHECK_THAT(
      error_of("{\"train_batch_size\": 2,\n\"zero_optimization\": {\"stage\": 4}}"),
      Containing("ds.json:2:32: zero_optimization.stage: is 4; it must lie between 0 and 3"));
  CHECK_THAT(error_of(R"({"train_batch_size": 2, "zero_optimization": {"stage": 3,
"reduce_bucket_size": 0.5}})"),
             Containing("ds.json:2:23: zero_optimization.reduce_bucket_size: is '0.5'; a whole"));
  CHECK_THAT(error_of(R"({"train_batch_size": 2, "zero_optimization": {"stage": 3,
"offload_optimizer": {"device": "nvm"}}})"),
             Containing("ds.json:2:33: zero_optimization.offload_optimizer.device: is 'nvm'; one "
                        "of: none, cpu, nvme (did you mean 'nvme'?)"));
  CHECK_THAT(error_of(R"({"train_batch_size": 2, "zero_optimization": {"stage": 3,
"offload_optimizer": {"device": "nvme"}}})"),
             Containing("device nvme needs nvme_path"));
  CHECK_THAT(error_of(R"({"train_batch_size": 2, "zero_optimization": {"stage": 2,
"offload_optimizer": "cpu"}})"),
             Containing("offload_optimizer: is 'cpu'; a map of keys is expected"));
  CHECK_THAT(error_of(R"({"train_batch_size": 2, "zero_optimization": {"stage": 2,
"cpu_offload": true, "offload_optimizer": {"device": "cpu"}}})"),
             Containing("cpu_offload: stands beside offload_optimizer; keep the latter alone"));
}
