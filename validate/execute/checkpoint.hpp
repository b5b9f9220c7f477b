#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/graph/layer_graph.hpp"
#include "validate/train/training.hpp"

/// The state of a training in files: parameters, moments and step, exact, from which it goes on bit
/// for bit.
///
/// A file "step-00000012.state" in a folder that the user named: lines of text (format, step, what
/// was trained, and of each tensor its place in the layer graph, its size and three check values),
/// a check value of these lines, and then master, first and second moment of every tensor, fp32,
/// little endian. It is written beside its name, flushed and renamed, so that under a name there is
/// a whole file or none.
namespace tidegate {

/// What a training has to have in common with the one that it goes on: everything that its numbers
/// depend on but the state. One line.
std::string fingerprint(const Workload& workload, const LayerGraph& graph,
                        const train::TrainingOptions& options);

/// Throws InputError when the folder is none that takes a state of the network, or has states of
/// another training.
void check_checkpoint_folder(const std::string& folder, const LayerGraph& graph,
                             const std::string& fingerprint);

/// Writes it, after asking for space; then removes the states of earlier steps but for the last of
/// them, and what a killed run has left half written. Returns the path. `written` is called after
/// each tensor. Throws InputError for a folder that cannot take it, MachineError when writing
/// fails.
std::string write_checkpoint(const std::string& folder, const train::State& state,
                             const std::string& fingerprint,
                             const std::function<void()>& written = {});

/// A file, or the newest of a folder. Throws InputError, with file and line or bytes, when it is
/// damaged, not there, or of another training.
train::State read_checkpoint(const std::string& path, const LayerGraph& graph,
                             const std::string& fingerprint);

}  // namespace tidegate
