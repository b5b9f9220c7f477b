#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plot/chart.hpp"
#include "sim/run/predict.hpp"

/// The recompute-offload-keep plot of SSDTrain (arXiv 2408.10013): what each way of treating
/// activations needs of GPU memory and gives in throughput, over micro-batch sizes.
namespace tidegate {

struct RokPlot {
  struct Point {
    std::int64_t micro_batch = 1;
    /// Most bytes allocated at the same time on a GPU, without its parameters and optimizer states
    /// (owners "parameters", "parameter shards", "persistent parameters", "optimizer states", which
    /// stand for the whole run). Gradients, buckets, gathered parameters and workspace count. Of
    /// the GPUs of a node the largest.
    Bytes activation_peak;
    FlopsPerSecond throughput;  ///< of the workload's FLOPs, per GPU, update included
    double tokens_per_second = 0;
    Seconds iteration_time;
    std::vector<std::string> overflows;  ///< pools; empty when it fits
    bool fits() const { return overflows.empty(); }
  };
  struct Curve {
    std::string name;    ///< "recompute full"
    std::string policy;  ///< as the policy describes itself
    std::vector<Point> points;
  };
  std::string scenario, profile, revision;
  Bytes room;  ///< of a GPU, besides parameters and optimizer states; of the node's the smallest
  std::vector<Curve> curves;
};

struct RokOptions {
  /// keep, full, selective, or another activation policy by its name in policy_table(); empty:
  /// these three, ssdtrain where there is one, and the scenario's own.
  /// The scenario's own options hold for the policy that it names.
  std::vector<std::string> policies;
  /// Empty: 1, 2, 4, … 64, each curve until the first that does not fit.
  std::vector<std::int64_t> micro_batches;
};

/// Predicts every point. Accumulation and all else is the scenario's. Throws InputError for a
/// policy that is not known or needs options that the scenario does not give, and for a workload of
/// explicit layers, whose sizes are fixed.
RokPlot rok_plot(const ScenarioSource& source, const std::vector<Override>& overrides,
                 const RokOptions& options = {});

/// A table for people.
std::string to_text(const RokPlot& plot);
/// One JSON object, schema "tidegate.rok/1", described in docs/rok_json.md.
std::string to_json(const RokPlot& plot);
/// Activation peak in GiB across, model TFLOP/s per GPU up; points that do not fit are hollow.
Chart to_chart(const RokPlot& plot);

}  // namespace tidegate
