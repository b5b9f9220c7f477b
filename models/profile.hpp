#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/base/yaml.hpp"
#include "models/machine.hpp"

/// hw_profiles/*.yaml: nodes, and the components that they are composed of.
///
///   kind: node
///   name: two of these
///   gpus:    {count: 2, component: components/h100.yaml, h2d: {value: 54 GB/s, source: "…"}}
///   host:    {numa_nodes: …, cores: …, memory: …, …}
///   fabric:  {per_gpu: …, latency: …}                   needed for more than one GPU
///   network: {nodes: 4, per_node: …, latency: …}        needed for more than one node
///   paths:
///     nvme: {count: 2, component: components/pm9a3_3840gb.yaml}
///     pfs:  {shared: true, capacity: …, read: …, write: …, …}
///
/// A part takes the values of its component (a file of the kind gpu, host, fabric, network, drive
/// or file_system, relative to the node's file) and replaces those that it gives itself. `count`
/// drives are striped: rates, capacity, endurance, caches and bytes in flight are those of one
/// drive, times count; a client's limit is not. Keys are the fields of devices.hpp; values are
/// cited as cited.hpp says. Counts of parts, names and flags are plain.
namespace tidegate {

/// Reads a node profile. `overrides` are (dotted key, YAML text) pairs set in the node's file
/// before reading: {"gpus.count", "2"}, {"paths.nvme.read", "7 GB/s"}. A Provenance::key is such a
/// key, and its value such a text (for a curve, of KEY.points).
/// Throws InputError with all problems; those of a component name the component's file.
Machine load_machine(const std::string& path,
                     const std::vector<std::pair<std::string, std::string>>& overrides = {});
/// The same in two steps: the file's values with those of its components and the overrides in
/// place, and the machine that they describe.
yaml::Value profile_values(const std::string& path,
                           const std::vector<std::pair<std::string, std::string>>& overrides = {});
Machine read_machine(yaml::Value values);

/// The file of a profile: a path (relative to `base_dir`), or the bare NAME of
/// hw_profiles/NAME.yaml. Throws InputError with the names that exist and the nearest one.
std::string find_profile(const std::string& name_or_path, const std::string& base_dir);

}  // namespace tidegate
