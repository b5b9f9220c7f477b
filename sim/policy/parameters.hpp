#pragma once

#include <memory>
#include <optional>

#include "sim/policy/policy.hpp"

/// The parameter policies of the table: where 16-bit shards live between uses.
namespace tidegate {

std::unique_ptr<ParameterPolicy> make_resident_parameters(yaml::Map& options,
                                                          const Machine& machine);
/// Shards in pinned host memory, copied to the GPU before every gather (offload_param: cpu).
std::unique_ptr<ParameterPolicy> make_host_parameters(yaml::Map& options, const Machine& machine);
/// Shards in files on `path`, through `buffer_count` pinned buffers (offload_param: nvme).
std::unique_ptr<ParameterPolicy> make_nvme_parameters(yaml::Map& options, const Machine& machine);

/// The index of the named storage path of the machine; an unknown name is a problem of the node.
std::optional<std::uint16_t> read_path(const yaml::Node& node, const Machine& machine);

/// A number of buffers, requests or threads: 1 to a million.
std::int32_t read_few(yaml::Map& options, const char* key, std::int64_t left_out);

}  // namespace tidegate
