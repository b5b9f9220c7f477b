#include "models/profile.hpp"

#include <algorithm>
#include <filesystem>

#include "models/base/file_kind.hpp"
#include "models/calibration.hpp"
#include "models/cited.hpp"

namespace tidegate {
namespace {

using yaml::Bound;
namespace fs = std::filesystem;

/// Replaces the components named in a node's tree by their values.
class Composer {
 public:
  explicit Composer(const std::string& node_file) : dir_(fs::path(node_file).parent_path()) {}

  void compose(yaml::Value& root) {
    for (yaml::Entry& entry : root.entries) {
      if (entry.key == "gpus") expand(entry, entry.key, {"gpu"});
      if (entry.key == "host" || entry.key == "fabric" || entry.key == "network") {
        expand(entry, entry.key, {entry.key});
      }
      if (entry.key != "paths") continue;
      for (yaml::Entry& path : entry.value.entries) {
        expand(path, "paths." + path.key, {"drive", "file_system"});
      }
    }
  }

  std::vector<Problem> problems;

 private:
  void expand(yaml::Entry& part, const std::string& key, const std::vector<std::string>& kinds) {
    auto& own = part.value.entries;
    const auto component = std::ranges::find(own, "component", &yaml::Entry::key);
    if (component == own.end()) return;
    const yaml::Value file = component->value;
    own.erase(component);
    const std::string path = (dir_ / file.text).string();
    if (!fs::is_regular_file(path)) {
      problems.push_back({file.where, key + ".component", "there is no file " + path});
      return;
    }
    yaml::Value values = yaml::load_file(path);
    check_kind(values, kinds);
    std::erase_if(values.entries, [&own](const yaml::Entry& e) {
      return e.key == "kind" || e.key == "description" ||
             std::ranges::find(own, e.key, &yaml::Entry::key) != own.end();
    });
    std::ranges::move(values.entries, std::back_inserter(own));
  }

  void check_kind(const yaml::Value& component, const std::vector<std::string>& kinds) {
    const yaml::Value* kind = component.find("kind");
    if (kind && std::ranges::find(kinds, kind->text) != kinds.end()) return;
    std::string expected;
    for (const std::string& k : kinds) expected += (expected.empty() ? "" : " or ") + k;
    problems.push_back({kind ? kind->where : component.where, "kind",
                        (kind ? "is '" + kind->text + "'" : "is missing") + std::string("; ") +
                            expected + " is expected here"});
  }

  fs::path dir_;
};

Gpu read_gpu(CitedMap& in) {
  Gpu gpu;
  gpu.name = in.plain().text("name");
  gpu.memory = in.quantity<Bytes>("memory");
  gpu.context = in.quantity<Bytes>("context", Bound::non_negative);
  gpu.blas_workspace = in.quantity_or("blas_workspace", Bytes(0));
  gpu.peak_16 = in.quantity<FlopsPerSecond>("peak_16");
  gpu.peak_32 = in.quantity<FlopsPerSecond>("peak_32");
  gpu.peak_8 = in.quantity_or("peak_8", FlopsPerSecond(0));
  gpu.memory_bandwidth = in.quantity<BytesPerSecond>("memory_bandwidth");
  gpu.gemm_efficiency = in.efficiency("gemm_efficiency", Dimension::flops);
  gpu.attention_efficiency = in.efficiency("attention_efficiency", Dimension::flops);
  for (const auto& [key, curve] : {std::pair{"gemm_efficiency_32", &gpu.gemm_efficiency_32},
                                   {"attention_efficiency_32", &gpu.attention_efficiency_32}}) {
    if (in.has(key)) *curve = in.efficiency(key, Dimension::flops);
  }
  gpu.memory_efficiency = in.efficiency("memory_efficiency", Dimension::bytes);
  gpu.launch = in.quantity<Seconds>("launch", Bound::non_negative);
  gpu.h2d = in.quantity<BytesPerSecond>("h2d");
  gpu.d2h = in.quantity<BytesPerSecond>("d2h");
  gpu.duplex = in.quantity_or("duplex", BytesPerSecond(0));
  gpu.copy_half_size = in.quantity<Bytes>("copy_half_size", Bound::non_negative);
  gpu.pageable_factor = in.number("pageable_factor", 1e-3, 1);
  gpu.collective_compute_fraction = in.number_or("collective_compute_fraction", 0, 0, 1);
  return gpu;
}

std::vector<Gpu> read_gpus(const yaml::Node& node, std::vector<Provenance>& provenance) {
  CitedMap in(node, provenance);
  const auto count = in.plain().at("count").count(1, 8);
  return std::vector<Gpu>(static_cast<std::size_t>(count), read_gpu(in));
}

// roots: {pcie0: {gpus: [0, 1], h2d: …, d2h: …}}
void read_roots(const yaml::Node& node, Host& host, std::vector<Gpu>& gpus,
                std::vector<Provenance>& provenance) {
  yaml::Map ports = node.map();
  for (const auto& [name, port] : ports.all()) {
    CitedMap in(port, provenance);
    for (const yaml::Node& gpu : in.plain().at("gpus").items()) {
      const auto i =
          static_cast<std::size_t>(gpu.count(0, static_cast<std::int64_t>(gpus.size()) - 1));
      if (gpus[i].root >= 0) gpu.problem("is behind another root port already");
      gpus[i].root = static_cast<std::int32_t>(host.roots.size());
    }
    host.roots.push_back(
        {name, in.quantity<BytesPerSecond>("h2d"), in.quantity<BytesPerSecond>("d2h")});
  }
}

Seconds launch_of_host(CitedMap& in) {
  if (in.has("launch")) return in.quantity<Seconds>("launch", Bound::non_negative);
  constexpr Seconds usual(8e-6);
  in.assume("launch", to_text(usual), "not given; eager PyTorch, 5 to 10 us an operator");
  return usual;
}

Host read_host(const yaml::Node& node, std::vector<Gpu>& gpus,
               std::vector<Provenance>& provenance) {
  CitedMap in(node, provenance);
  in.plain().text_or("name", "");
  Host host;
  host.numa_nodes = static_cast<std::int32_t>(in.count("numa_nodes", 1, 64));
  host.cores = static_cast<std::int32_t>(in.count("cores", 1, 4096));
  host.memory = in.quantity<Bytes>("memory");
  host.memory_bandwidth = in.quantity<BytesPerSecond>("memory_bandwidth");
  host.adam_rate = in.number("adam_rate", 1e3, 1e15);
  host.cast_rate = in.number("cast_rate", 1e3, 1e15);
  const double ranks = static_cast<double>(gpus.size()) / host.numa_nodes;
  host.ranks_per_numa = in.number_or("ranks_per_numa", std::max(1.0, ranks), 1, 4096);
  host.copy_rate = in.quantity<BytesPerSecond>("copy_rate");
  host.base_use = in.quantity<Bytes>("base_use", Bound::non_negative);
  host.launch = launch_of_host(in);
  host.process_use = in.quantity_or("process_use", Bytes(0));
  if (const auto roots = in.plain().find("roots")) read_roots(*roots, host, gpus, provenance);
  return host;
}

void read_fabric(const yaml::Node& node, Fabric& fabric, std::vector<Provenance>& provenance) {
  CitedMap in(node, provenance);
  in.plain().text_or("name", "");
  fabric.per_gpu = in.quantity<BytesPerSecond>("per_gpu");
  if (in.has("efficiency")) fabric.efficiency = in.efficiency("efficiency", Dimension::bytes);
  fabric.links = in.quantity_or("links", fabric.per_gpu);
  if (fabric.links < fabric.per_gpu) {
    in.plain().at("links").problem("carry less than one collective reaches (per_gpu)");
  }
  fabric.latency = in.quantity<Seconds>("latency", Bound::non_negative);
}

void read_network(const yaml::Node& node, Fabric& fabric, std::vector<Provenance>& provenance) {
  CitedMap in(node, provenance);
  in.plain().text_or("name", "");
  fabric.nodes = static_cast<std::int32_t>(in.plain().at("nodes").count(1, 1000000));
  fabric.per_node = in.quantity<BytesPerSecond>("per_node");
  fabric.per_nic = in.quantity_or("per_nic", BytesPerSecond(0));
  if (fabric.per_nic > fabric.per_node) {
    in.plain().at("per_nic").problem("is more than all adapters of the node carry (per_node)");
  }
  fabric.network_latency = in.quantity<Seconds>("latency", Bound::non_negative);
}

BytesPerSecond mixed_rate(CitedMap& in, const std::string& key, BytesPerSecond pure) {
  if (in.has(key)) {
    const auto rate = in.quantity<BytesPerSecond>(key);
    const std::string pure_key = key.substr(0, key.find('_'));
    if (in.is_overridden(pure_key) && !in.is_overridden(key)) {
      in.doubt_last(fmt::format("of the profile, though {} was set; set it too", pure_key));
    }
    return rate;
  }
  in.assume(key, to_text(pure), "not given; the pure rate, both directions sharing one budget");
  return pure;
}

// A cache that fills needs to say what follows.
void read_cache(CitedMap& in, StoragePath& path) {
  if (!in.has("cache")) return;
  path.cache = in.quantity<Bytes>("cache");
  path.write_sustained = in.quantity<BytesPerSecond>("write_sustained");
  path.cache_recovery = in.quantity<BytesPerSecond>("cache_recovery", Bound::non_negative);
  if (path.write_sustained > path.write) {
    in.plain().at("write_sustained").problem("is faster than write; a full cache is slower");
  }
}

void read_endurance(CitedMap& in, StoragePath& path) {
  path.endurance_bytes = in.quantity_or("endurance", Bytes(0)).value();
  path.warranty_years = in.number_or("warranty", 5, 0.1, 100);
  if (path.endurance_bytes > 0 && !in.has("warranty")) {
    in.assume("warranty", "5", "not given; years that ratings of drives usually count on");
  }
  path.write_amplification = in.number_or("write_amplification", 1, 1, 100);
  path.rated_write_amplification = in.number_or("rated_write_amplification", 1, 1, 100);
}

StoragePath read_path(const std::string& name, const yaml::Node& node,
                      std::vector<Provenance>& provenance) {
  CitedMap in(node, provenance);
  in.plain().text_or("name", "");
  StoragePath path;
  path.name = name;
  path.capacity = in.quantity<Bytes>("capacity");
  path.read = in.quantity<BytesPerSecond>("read");
  path.write = in.quantity<BytesPerSecond>("write");
  path.read_mixed = mixed_rate(in, "read_mixed", path.read);
  path.write_mixed = mixed_rate(in, "write_mixed", path.write);
  path.client_read = in.quantity_or("client_read", BytesPerSecond(0));
  path.client_write = in.quantity_or("client_write", BytesPerSecond(0));
  path.latency = in.quantity<Seconds>("latency", Bound::non_negative);
  path.block_half_size = in.quantity<Bytes>("block_half_size", Bound::non_negative);
  path.is_shared = in.plain().flag_or("shared", false);
  path.gpudirect = in.flag_or("gpudirect", false);
  read_endurance(in, path);
  read_cache(in, path);
  return path.times(static_cast<double>(in.plain().count_or("count", 1, 1)));
}

struct Parts {
  std::string name;
  std::vector<Gpu> gpus;
  Host host;
  Fabric fabric;
  std::vector<StoragePath> paths;
  std::vector<Provenance> provenance;
};

Parts read_node(yaml::Document& document) {
  Parts parts;
  yaml::Map root = document.root().map();
  const yaml::Node kind = root.at("kind");
  const std::string found = kind.text();
  if (kind.is_scalar() && found != "node") {
    kind.problem("is '" + found + "'; a profile to run on is of the kind node");
  }
  parts.name = root.text("name");
  root.text_or("description", "");
  parts.gpus = read_gpus(root.at("gpus"), parts.provenance);
  parts.host = read_host(root.at("host"), parts.gpus, parts.provenance);
  if (const auto fabric = root.find("fabric")) {
    read_fabric(*fabric, parts.fabric, parts.provenance);
  } else if (parts.gpus.size() > 1) {
    root.node().problem("has several GPUs and no fabric; add fabric: {per_gpu: …, latency: …}");
  }
  if (const auto network = root.find("network")) {
    read_network(*network, parts.fabric, parts.provenance);
  }
  if (const auto paths = root.find("paths")) {
    yaml::Map map = paths->map();
    for (const auto& [name, node] : map.all()) {
      parts.paths.push_back(read_path(name, node, parts.provenance));
    }
  }
  // How values were measured changes none of them; it is only held to its keys.
  if (const auto calibration = root.find("calibration")) read_calibration(*calibration);
  return parts;
}

std::vector<std::string> profile_names(const fs::path& dir) {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(dir, absent)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

// A key of a storage path that is not there is mistyped more often than the first of a new one.
void check_path_is_there(const yaml::Value& root, const std::string& key) {
  constexpr std::string_view list = "paths.";
  const std::size_t dot = key.find('.', list.size());
  if (!key.starts_with(list) || dot == std::string::npos) return;
  const std::string name = key.substr(list.size(), dot - list.size());
  std::vector<std::string> names;
  if (const yaml::Value* paths = root.find("paths"); paths != nullptr) {
    for (const yaml::Entry& path : paths->entries) names.push_back(path.key);
  }
  if (std::ranges::find(names, name) != names.end()) return;
  std::string known;
  for (const std::string& n : names) known += (known.empty() ? "" : ", ") + n;
  const std::string near = nearest(name, names);
  throw InputError(
      {override_name, 0, 0}, "paths." + name,
      fmt::format("is no storage path of the profile, which has {}{}; write a new one "
                  "whole: machine.paths.{}={{read: 7 GB/s, …}}",
                  known.empty() ? "none" : known,
                  near.empty() ? "" : fmt::format(" (did you mean '{}'?)", near), name));
}

}  // namespace

yaml::Value profile_values(const std::string& path,
                           const std::vector<std::pair<std::string, std::string>>& overrides) {
  yaml::Value root = yaml::load_file(path);
  expect(FileKind::profile, root);
  for (const auto& [key, text] : overrides) {
    check_path_is_there(root, key);
    yaml::set(root, key, text, {override_name, 0, 0});
  }
  Composer composer(path);
  composer.compose(root);
  // Without its component a part misses every key; only the cause is worth saying.
  if (!composer.problems.empty()) throw InputError(composer.problems);
  return root;
}

Machine read_machine(yaml::Value values) {
  yaml::Document document(std::move(values));
  Parts parts = read_node(document);
  document.finish();
  return Machine(std::move(parts.name), std::move(parts.gpus), std::move(parts.host), parts.fabric,
                 std::move(parts.paths), std::move(parts.provenance));
}

Machine load_machine(const std::string& path,
                     const std::vector<std::pair<std::string, std::string>>& overrides) {
  return read_machine(profile_values(path, overrides));
}

std::string find_profile(const std::string& name_or_path, const std::string& base_dir) {
  const fs::path asked = fs::path(base_dir) / name_or_path;
  const bool is_path = name_or_path.find('/') != std::string::npos || asked.extension() == ".yaml";
  if (is_path && fs::is_regular_file(asked)) return asked.lexically_normal().string();
  if (is_path) throw InputError("there is no profile " + asked.lexically_normal().string());
  const fs::path dir = fs::path(TIDEGATE_DATA_DIR) / "hw_profiles";
  const std::vector<std::string> names = profile_names(dir);
  if (std::ranges::find(names, name_or_path) != names.end()) {
    return (dir / (name_or_path + ".yaml")).string();
  }
  const std::string near = nearest(name_or_path, names);
  std::string text = "there is no profile '" + name_or_path + "'; ";
  if (!near.empty()) text += "did you mean '" + near + "'? ";
  text += "there are:";
  for (const std::string& name : names) text += " " + name;
  throw InputError(text);
}

}  // namespace tidegate
