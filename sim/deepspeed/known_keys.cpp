#include "sim/deepspeed/known_keys.hpp"

#include <array>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

using Word = std::string_view;

constexpr std::array<Word, 13> top_read = {"train_batch_size",
                                           "train_micro_batch_size_per_gpu",
                                           "gradient_accumulation_steps",
                                           "bf16",
                                           "bfloat16",
                                           "fp16",
                                           "zero_optimization",
                                           "aio",
                                           "optimizer",
                                           "activation_checkpointing",
                                           "data_types",
                                           "allgather_size",
                                           "amp"};
constexpr std::array<Word, 21> top_harmless = {"steps_per_print",
                                               "gradient_clipping",
                                               "scheduler",
                                               "zero_allow_untested_optimizer",
                                               "zero_force_ds_cpu_optimizer",
                                               "prescale_gradients",
                                               "gradient_predivide_factor",
                                               "dump_state",
                                               "tensorboard",
                                               "wandb",
                                               "comet",
                                               "csv_monitor",
                                               "comms_logger",
                                               "checkpoint",
                                               "dataloader_drop_last",
                                               "memory_breakdown",
                                               "autotuning",
                                               "vocabulary_size",
                                               "elasticity",
                                               "nebula",
                                               "load_universal_checkpoint"};
constexpr std::array<Word, 23> top_not_simulated = {"wall_clock_breakdown",
                                                    "flops_profiler",
                                                    "communication_data_type",
                                                    "seq_parallel_communication_data_type",
                                                    "fp32_allreduce",
                                                    "sparse_gradients",
                                                    "sparse_attention",
                                                    "disable_allgather",
                                                    "curriculum_learning",
                                                    "data_efficiency",
                                                    "compression_training",
                                                    "progressive_layer_drop",
                                                    "eigenvalue",
                                                    "quantize_training",
                                                    "weight_quantization",
                                                    "hybrid_engine",
                                                    "pipeline",
                                                    "tensor_parallel",
                                                    "sequence_parallel_size",
                                                    "torch_autocast",
                                                    "compile",
                                                    "graph_harvesting",
                                                    "use_data_before_expert_parallelism"};

constexpr std::array<Word, 18> zero_read = {"stage",
                                            "reduce_scatter",
                                            "reduce_bucket_size",
                                            "overlap_comm",
                                            "sub_group_size",
                                            "offload_param",
                                            "offload_optimizer",
                                            "cpu_offload",
                                            "cpu_offload_param",
                                            "cpu_offload_use_pin_memory",
                                            "stage3_prefetch_bucket_size",
                                            "prefetch_bucket_size",
                                            "stage3_param_persistence_threshold",
                                            "param_persistence_threshold",
                                            "stage3_max_live_parameters",
                                            "max_live_parameters",
                                            "stage3_max_reuse_distance",
                                            "max_reuse_distance"};
constexpr std::array<Word, 13> zero_harmless = {"contiguous_gradients",
                                                "load_from_fp32_weights",
                                                "elastic_checkpoint",
                                                "stage3_gather_16bit_weights_on_model_save",
                                                "gather_16bit_weights_on_model_save",
                                                "stage3_gather_fp16_weights_on_model_save",
                                                "ignore_unused_parameters",
                                                "legacy_stage1",
                                                "pipeline_loading_checkpoint",
                                                "override_module_apply",
                                                "log_trace_cache_warnings",
                                                "enable_sanity_checks",
                                                "stage3_partition_stream_chunk_size"};
constexpr std::array<Word, 3> zero_on = {"allgather_partitions", "use_multi_rank_bucket_allreduce",
                                         "memory_efficient_linear"};
constexpr std::array<Word, 18> zero_not_simulated = {"zenflow",
                                                     "allgather_bucket_size",
                                                     "round_robin_gradients",
                                                     "zero_hpz_partition_size",
                                                     "zero_quantized_weights",
                                                     "zero_quantized_nontrainable_weights",
                                                     "zero_quantized_gradients",
                                                     "zeropp_loco_param",
                                                     "mics_shard_size",
                                                     "mics_hierarchical_params_gather",
                                                     "stage3_model_persistence_threshold",
                                                     "model_persistence_threshold",
                                                     "stage3_module_granularity_threshold",
                                                     "module_granularity_threshold",
                                                     "stage3_use_all_reduce_for_fetch_params",
                                                     "stage3_allgather_sequential",
                                                     "save_muon_momentum_buffer_in_memory",
                                                     "leaf_module"};

// dist_opt_…: MLP-Offload's fork alone (launch script of the artifact of arXiv 2509.02480).
constexpr std::array<Word, 11> optimizer_read = {"device",
                                                 "nvme_path",
                                                 "buffer_count",
                                                 "pin_memory",
                                                 "pipeline_read",
                                                 "pipeline_write",
                                                 "ratio",
                                                 "dist_opt_enable_caching",
                                                 "dist_opt_ratio",
                                                 "dist_opt_grad_skip",
                                                 "dist_opt_one_at_time"};
constexpr std::array<Word, 1> optimizer_harmless = {"fast_init"};
constexpr std::array<Word, 1> optimizer_on = {"convert_grad_on_cpu"};
constexpr std::array<Word, 2> optimizer_not_simulated = {"super_offload", "cpuadam_cores_perc"};

constexpr std::array<Word, 6> param_read = {"device",      "nvme_path",  "buffer_count",
                                            "buffer_size", "pin_memory", "max_in_cpu"};

constexpr std::array<Word, 4> aio_read = {"block_size", "queue_depth", "thread_count",
                                          "intra_op_parallelism"};
constexpr std::array<Word, 1> aio_on = {"overlap_events"};
constexpr std::array<Word, 2> aio_not_simulated = {"single_submit", "use_gds"};

constexpr std::array<Word, 1> precision_read = {"enabled"};
constexpr std::array<Word, 7> fp16_harmless = {
    "loss_scale",     "initial_scale_power", "loss_scale_window",      "hysteresis",
    "min_loss_scale", "auto_cast",           "consecutive_hysteresis",
};
constexpr std::array<Word, 1> fp16_not_simulated = {"fp16_master_weights_and_grads"};
constexpr std::array<Word, 1> bf16_harmless = {"check_grad_overflow"};
constexpr std::array<Word, 3> bf16_not_simulated = {
    "immediate_grad_update", "bf16_master_weights_and_grads", "bf16_optimizer_states"};

constexpr std::array<Word, 3> checkpointing_harmless = {"number_checkpoints", "profile",
                                                        "synchronize_checkpoint_boundary"};
constexpr std::array<Word, 3> checkpointing_not_simulated = {
    "partition_activations", "cpu_checkpointing", "contiguous_memory_optimization"};

constexpr std::array<Word, 1> data_types_read = {"grad_accum_dtype"};

struct Section {
  Word name;
  KnownKeys keys;
};
const std::array<Section, 9> sections = {
    Section{"", {top_read, top_harmless, {}, top_not_simulated, false}},
    {"zero_optimization", {zero_read, zero_harmless, zero_on, zero_not_simulated, true}},
    {"offload_optimizer",
     {optimizer_read, optimizer_harmless, optimizer_on, optimizer_not_simulated, true}},
    {"offload_param", {param_read, {}, {}, {}, true}},
    {"aio", {aio_read, {}, aio_on, aio_not_simulated, false}},
    {"bf16", {precision_read, bf16_harmless, {}, bf16_not_simulated, true}},
    {"fp16", {precision_read, fp16_harmless, {}, fp16_not_simulated, true}},
    {"activation_checkpointing",
     {{}, checkpointing_harmless, {}, checkpointing_not_simulated, false}},
    {"data_types", {data_types_read, {}, {}, {}, false}},
};

}  // namespace

const KnownKeys& known_keys(std::string_view section) {
  for (const Section& s : sections) {
    if (s.name == section) return s.keys;
  }
  ensure(false, "a section of ds_config.json has its keys");
  return sections[0].keys;
}

}  // namespace tidegate
