#include <algorithm>

#include <fmt/core.h>

#include "sim/deepspeed/reading.hpp"

namespace tidegate {
namespace {

// Defaults of deepspeed/runtime/zero/offload_config.py.
constexpr std::int64_t usual_parameter_buffer = 100'000'000;
constexpr std::int64_t usual_buffers = 4;

// "/local/nvme0/" has the parts local and nvme0.
std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '/')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// A ds_config.json has a directory, a profile the name of a storage path: the one that is a part of
// the directory, else with which a part begins, else the first that is free.
std::string path_for(Reading& reading, const yaml::Node& node, const std::string& directory,
                     const std::vector<std::string>& taken) {
  const std::vector<std::string> parts = parts_of(directory);
  std::vector<std::string> open;
  for (const std::string& path : reading.setting.paths) {
    if (std::ranges::find(taken, path) == taken.end()) open.push_back(path);
  }
  if (open.empty()) {
    node.problem(taken.empty() ? "needs a storage path, and the profile has none; add one under "
                                 "paths, or take a node that has drives"
                               : "names more directories than the profile has storage paths");
    return "";
  }
  for (const std::string& path : open) {
    if (std::ranges::find(parts, path) != parts.end()) return path;
  }
  const auto begins = [&](const std::string& path) {
    return std::ranges::any_of(parts, [&](const std::string& p) { return p.starts_with(path); });
  };
  const auto at = std::ranges::find_if(open, begins);
  const std::string chosen = at != open.end() ? *at : open.front();
  reading.remark(
      RemarkKind::filled, node,
      fmt::format("{} is taken to be the storage path {} of the profile", directory, chosen));
  return chosen;
}

std::optional<yaml::Node> nvme_path(const yaml::Node& section) {
  yaml::Map map = section.map();
  map.ignore_rest();
  const auto node = map.find("nvme_path");
  if (node && !node->is_null() && !node->text().empty()) return node;
  section.problem("device nvme needs nvme_path, a directory on the drive");
  return std::nullopt;
}

// Multi-path keys of MLP-Offload's fork: nvme_path is a list with ';', of which sub-groups with id
// mod dist_opt_ratio = 0 go to the second. Its lock is taken on paths with "vast" in their name
// (swap_tensor/utils.py at fb30366f of DataStates/DeepSpeed).
struct Fork {
  bool is_cached = false, skips_gradients = false, is_exclusive = false;
  std::int64_t ratio = 0;
  std::vector<std::string> directories;

  bool is_used() const { return is_cached || skips_gradients || is_exclusive || ratio > 0; }
};

Fork read_fork(Reading& reading, const yaml::Node& section, const std::string& directories) {
  yaml::Map map = section.map();
  map.ignore_rest();
  Fork fork;
  for (const char* key : {"dist_opt_enable_caching", "dist_opt_grad_skip", "dist_opt_ratio",
                          "dist_opt_one_at_time"}) {
    if (const auto node = map.find(key)) {
      reading.remark(RemarkKind::refused, *node,
                     "a key of MLP-Offload's fork, at which DeepSpeed itself stops");
    }
  }
  fork.is_cached = flag_of(map, "dist_opt_enable_caching", false);
  fork.skips_gradients = flag_of(map, "dist_opt_grad_skip", false);
  fork.is_exclusive = flag_of(map, "dist_opt_one_at_time", false);
  fork.ratio = map.count_or("dist_opt_ratio", 0);
  fork.directories.emplace_back();
  for (const char c : directories) {
    if (c == ';')
      fork.directories.emplace_back();
    else
      fork.directories.back() += c;
  }
  std::erase(fork.directories, "");
  return fork;
}

void put_fork(Reading& reading, const yaml::Node& paths, Fork fork) {
  const Where& where = paths.where();
  reading.put("optimizer.name", "mlp_offload", where);
  if (fork.ratio == 0 || fork.directories.size() < 2) {
    if (fork.directories.size() > 1)
      reading.remark(RemarkKind::ignored, paths, "without dist_opt_ratio the first alone is used");
    fork.directories.resize(1);
  } else if (fork.directories.size() > 2) {
    reading.remark(RemarkKind::ignored, paths, "the fork uses two paths at most");
    fork.directories.resize(2);
  }
  std::vector<std::string> names;
  std::string list, locked;
  for (const std::string& directory : fork.directories) {
    const std::string name = path_for(reading, paths, directory, names);
    if (name.empty()) return;
    names.push_back(name);
    list += (list.empty() ? "" : ", ") + name;
    if (fork.is_exclusive && directory.find("vast") != std::string::npos)
      locked += (locked.empty() ? "" : ", ") + name;
  }
  if (fork.is_exclusive && locked.empty()) {
    reading.remark(RemarkKind::ignored, paths,
                   "dist_opt_one_at_time locks paths with 'vast' in their name, and none has it");
  }
  reading.put("optimizer.paths", "[" + list + "]", where);
  if (names.size() == 2)
    reading.put("optimizer.assignment", fmt::format("{{modulo: {}}}", fork.ratio), where);
  reading.put("optimizer.exclusive", "[" + locked + "]", where);
  reading.put("optimizer.cache", flag_text(fork.is_cached), where);
  reading.put("optimizer.delayed_gradients", flag_text(fork.skips_gradients), where);
}

}  // namespace

std::int64_t swap_buffers_needed(bool is_read_pipelined, bool is_write_pipelined) {
  constexpr std::int64_t states = 4;
  return states * (1 + (is_read_pipelined ? 1 : 0) + (is_write_pipelined ? 1 : 0));
}

void read_nvme_optimizer(Reading& reading, yaml::Map& zero, const yaml::Node& section) {
  const auto path = nvme_path(section);
  if (!path) return;
  const Fork fork = read_fork(reading, section, path->text());
  const Where& where = section.where();
  if (fork.is_used() && !fork.directories.empty()) {
    put_fork(reading, *path, fork);
  } else {
    reading.put("optimizer.name", "zero_infinity", where);
    reading.put("optimizer.path", yaml::word(path_for(reading, *path, path->text(), {})),
                path->where());
  }
  yaml::Map map = section.map();
  map.ignore_rest();
  read_sub_group(reading, zero);
  const auto count = map.find("buffer_count");
  const std::int64_t buffers = count && !is_auto(*count) ? count->count(1) : usual_buffers;
  const bool reads = flag_of(map, "pipeline_read", false);
  const bool writes = flag_of(map, "pipeline_write", false);
  const std::int64_t needed = swap_buffers_needed(reads, writes);
  if (buffers < needed && !fork.is_used()) {
    add_remark(
        reading.run.remarks,
        {RemarkKind::refused, count ? count->where() : where, section.path() + ".buffer_count",
         fmt::format("is {}, and the swapper holds up to {}: 4 states of each sub-group on "
                     "its way",
                     buffers, needed)});
  }
  reading.put("optimizer.buffer_count", std::to_string(buffers), count ? count->where() : where);
  reading.put("optimizer.pipeline_read", flag_text(reads), where);
  reading.put("optimizer.pipeline_write", flag_text(writes), where);
  const auto ratio = map.find("ratio");
  if (ratio && !is_auto(*ratio) && ratio->fraction() < 1)
    reading.remark(RemarkKind::not_simulated, *ratio, "with device nvme predicted as 1");
}

void read_nvme_parameters(Reading& reading, const yaml::Node& section) {
  const auto path = nvme_path(section);
  if (!path) return;
  yaml::Map map = section.map();
  map.ignore_rest();
  reading.put("parameters.name", "nvme", section.where());
  reading.put("parameters.path", yaml::word(path_for(reading, *path, path->text(), {})),
              path->where());
  const auto count = map.find("buffer_count");
  reading.put("parameters.buffer_count",
              std::to_string(count && !is_auto(*count) ? count->count(1) : 5),
              count ? count->where() : section.where());
  const auto size = map.find("buffer_size");
  const std::int64_t elements =
      size && !is_auto(*size) ? reading.elements(*size, 0) : usual_parameter_buffer;
  // deepspeed/runtime/swap_tensor/partitioned_param_swapper.py, get_buffer.
  const std::int64_t ranks = reading.setting.data_parallel;
  const std::int64_t shard = (reading.setting.largest_tensor + ranks - 1) / ranks;
  if (shard > elements) {
    add_remark(reading.run.remarks,
               {RemarkKind::refused, size ? size->where() : section.where(),
                section.path() + ".buffer_size",
                fmt::format("is {} elements, and the largest tensor's part of a rank has {}; write "
                            "that or more",
                            elements, shard)});
  } else if (size) {
    reading.remark(RemarkKind::not_simulated, *size,
                   "predicted with buffers of the largest layer's part");
  }
  if (const auto most = map.find("max_in_cpu"); !most || most->value().text != "0") {
    add_remark(reading.run.remarks,
               {RemarkKind::not_simulated, most ? most->where() : section.where(),
                section.path() + ".max_in_cpu",
                fmt::format("is {} elements; predicted as 0, with every parameter on the drive",
                            most ? most->text() : "by default 1e9")});
  }
}

// deepspeed/runtime/swap_tensor/constants.py: 1 MiB, 8 and 1 by default.
void read_aio(Reading& reading, yaml::Map& top, bool uses_files) {
  const auto node = top.find("aio");
  const yaml::Node section = reading.section_of(node, top.node(), "aio");
  if (node && !uses_files) {
    reading.remark(RemarkKind::ignored, *node, "nothing is on nvme");
    return;
  }
  if (node) reading.look_over(section, "aio");
  const yaml::Value* name = reading.run.policy.find("optimizer");
  const yaml::Value* optimizer = name ? name->find("name") : nullptr;
  if (!optimizer || (optimizer->text != "zero_infinity" && optimizer->text != "mlp_offload"))
    return;
  yaml::Map map = section.map();
  map.ignore_rest();
  auto threads = map.find("intra_op_parallelism");
  if (const auto old = map.find("thread_count"); old && !threads) {
    threads = old;
    reading.remark(RemarkKind::ignored, *old,
                   "is called intra_op_parallelism from DeepSpeed pull request 7056 on, where it "
                   "would be 1; predicted as it stands");
  }
  const Where& where = node ? section.where() : top.node().where();
  const auto put = [&](const char* key, const std::optional<yaml::Node>& value, std::int64_t usual,
                       const char* unit) {
    const std::int64_t count = value ? value->count(1) : usual;
    reading.put(std::string("optimizer.aio.") + key, std::to_string(count) + unit,
                value ? value->where() : where);
  };
  put("block_size", map.find("block_size"), 1 << 20, " B");
  put("queue_depth", map.find("queue_depth"), 8, "");
  put("thread_count", threads, 1, "");
}

}  // namespace tidegate
