#pragma once

#include <cstdint>
#include <vector>

/// In which order the stages of a pipeline run their micro-batches.
namespace tidegate {

/// One micro-batch through one chunk of a stage.
struct Action {
  std::uint16_t stage = 0;
  std::uint16_t chunk = 0;
  std::int32_t micro_batch = 0;
  bool is_forward = true;

  /// Position of the chunk in the network: chunk · stages + stage.
  std::int64_t piece(std::int64_t stages) const { return chunk * stages + stage; }
  bool operator==(const Action&) const = default;
};

/// One forward, one backward (1F1B): a stage first runs the forwards that fill the pipeline behind
/// it, then alternates, then runs the backwards that are left (PipeDream-Flush; Narayanan et al.
/// 2021, arXiv 2104.04473, section 2.2). With one stage: forward and backward of each micro-batch
/// in turn.
///
///   warm-up of stage s         min(p - 1 - s, m) forwards
///   interleaved, c chunks      min(2 (p - 1 - s) + (c - 1) p, m c): micro-batches in groups of p,
///                              each group through all chunks; needs m to be a multiple of p
///
/// The actions of all stages in one order in which whatever an action waits for (the piece before
/// it in forward, behind it in backward, its stage's previous action) comes earlier.
std::vector<Action> pipeline_schedule(std::int64_t stages, std::int64_t chunks,
                                      std::int64_t micro_batches);

/// The same of one stage alone.
std::vector<Action> stage_schedule(std::int64_t stage, std::int64_t stages, std::int64_t chunks,
                                   std::int64_t micro_batches);

}  // namespace tidegate
