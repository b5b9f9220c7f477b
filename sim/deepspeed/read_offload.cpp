#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "sim/deepspeed/reading.hpp"

namespace tidegate {
namespace {

constexpr std::array<std::string_view, 3> devices = {"none", "cpu", "nvme"};
enum class Device : std::uint8_t { none, cpu, nvme };

Device device_of(const yaml::Node& section) {
  yaml::Map map = section.map();
  map.ignore_rest();
  const auto node = map.find("device");
  return node ? static_cast<Device>(node->choice(devices)) : Device::none;
}

void read_cpu(Reading& reading, yaml::Map& zero, const yaml::Node& section, std::int64_t stage) {
  yaml::Map map = section.map();
  map.ignore_rest();
  const auto ratio = map.find("ratio");
  const double share = ratio && !is_auto(*ratio) ? ratio->fraction() : 1;
  const bool is_divided = stage == 3 && share < 1;
  if (ratio && stage < 3 && share < 1)
    reading.remark(RemarkKind::ignored, *ratio,
                   "works at stage 3 only: all is updated on the host");
  const Where& where = section.where();
  reading.put("optimizer.name", is_divided ? "twin_flow" : "zero_offload", where);
  if (is_divided) reading.put("optimizer.ratio", ratio->value().text, ratio->where());
  reading.put("optimizer.pin_memory", flag_text(flag_of(map, "pin_memory", false)), where);
  if (stage == 3) read_sub_group(reading, zero);
  for (const char* key : {"buffer_count", "pipeline_read", "pipeline_write"}) {
    const auto node = map.find(key);
    if (node && node->value().text != "false")
      reading.remark(RemarkKind::ignored, *node, "works with device nvme only");
  }
}

struct Offload {
  std::optional<yaml::Node> section;
  Device device = Device::none;
};

// A section, or the flag that came before it (zero/config.py: deprecated fields). Both together
// DeepSpeed refuses.
Offload find_offload(Reading& reading, yaml::Map& zero, const char* name, const char* deprecated) {
  Offload found{zero.find(name), Device::none};
  const auto old = zero.find(deprecated);
  if (found.section && found.section->is_null()) found.section.reset();
  if (old && found.section)
    old->problem(fmt::format("stands beside {}; keep the latter alone", name));
  if (found.section) {
    reading.look_over(*found.section, name);
    found.device = device_of(*found.section);
  } else if (old && old->flag()) {
    found.section = old;
    found.device = Device::cpu;
    reading.remark(RemarkKind::changed, *old,
                   fmt::format("deprecated: becomes {} with device cpu, not pinned", name));
  }
  return found;
}

void read_optimizer_offload(Reading& reading, yaml::Map& zero, std::int64_t stage) {
  const Offload offload = find_offload(reading, zero, "offload_optimizer", "cpu_offload");
  if (offload.device == Device::none || !offload.section) {
    reading.put("optimizer.name", "resident", zero.node().where());
    return;
  }
  const yaml::Node section = reading.section_of(offload.section, zero.node(), "zero_optimization");
  if (stage == 0) {
    reading.put("optimizer.name", "resident", section.where());
    reading.remark(RemarkKind::ignored, *offload.section, "needs stage 1, 2 or 3");
  } else if (offload.device == Device::nvme && stage == 3) {
    read_nvme_optimizer(reading, zero, section);
  } else {
    // deepspeed/runtime/zero/stage_1_and_2.py: any device but none is the CPU.
    if (offload.device == Device::nvme) {
      reading.remark(RemarkKind::changed, *offload.section,
                     fmt::format("device nvme works at stage 3 only: at stage {} states stay in "
                                 "host memory",
                                 stage));
    }
    read_cpu(reading, zero, section, stage);
  }
}

void read_parameter_offload(Reading& reading, yaml::Map& zero, std::int64_t stage) {
  const Offload offload = find_offload(reading, zero, "offload_param", "cpu_offload_param");
  const bool is_on = offload.section && offload.device != Device::none;
  if (is_on && stage == 3 && offload.device == Device::nvme)
    return read_nvme_parameters(
        reading, reading.section_of(offload.section, zero.node(), "zero_optimization"));
  const bool is_host = is_on && stage == 3;
  reading.put("parameters.name", is_host ? "host" : "resident",
              is_on ? offload.section->where() : zero.node().where());
  if (is_on && stage < 3) {
    reading.remark(RemarkKind::ignored, *offload.section,
                   "works at stage 3 only: parameters stay on the GPU");
  }
  if (!is_host) return;
  yaml::Map map = reading.section_of(offload.section, zero.node(), "zero_optimization").map();
  map.ignore_rest();
  if (!flag_of(map, "pin_memory", false))
    reading.remark(RemarkKind::not_simulated, *offload.section,
                   "is not pinned; predicted as pinned");
}

bool is_file(const yaml::Value& policy, const char* section) {
  const yaml::Value* map = policy.find(section);
  const yaml::Value* name = map ? map->find("name") : nullptr;
  return name &&
         (name->text == "nvme" || name->text == "zero_infinity" || name->text == "mlp_offload");
}

}  // namespace

void read_sub_group(Reading& reading, yaml::Map& zero) {
  constexpr std::int64_t usual = 1'000'000'000;
  const auto node = zero.find("sub_group_size");
  const std::int64_t size = node && !is_auto(*node) ? reading.elements(*node, 0) : usual;
  if (node && size == 0)
    reading.remark(RemarkKind::changed, *node, "0 makes every tensor a sub-group of its own");
  reading.put("optimizer.sub_group_size", std::to_string(std::max<std::int64_t>(size, 1)),
              node ? node->where() : zero.node().where());
}

void read_offload(Reading& reading, yaml::Map& top, yaml::Map& zero, std::int64_t stage) {
  read_optimizer_offload(reading, zero, stage);
  read_parameter_offload(reading, zero, stage);
  if (const auto pin = zero.find("cpu_offload_use_pin_memory"))
    reading.remark(RemarkKind::ignored, *pin,
                   "deprecated: write pin_memory in the offload section");
  const yaml::Value* optimizer = reading.run.policy.find("optimizer");
  const bool is_used = optimizer && optimizer->find("sub_group_size");
  if (const auto size = zero.find("sub_group_size"); size && stage < 3) {
    reading.remark(RemarkKind::ignored, *size, fmt::format("has no effect at stage {}", stage));
  } else if (size && !is_used) {
    reading.remark(RemarkKind::not_simulated, *size,
                   "predicted as one group, for the optimizer is on the GPU");
  }
  const yaml::Value& policy = reading.run.policy;
  read_aio(reading, top, is_file(policy, "optimizer") || is_file(policy, "parameters"));
}

}  // namespace tidegate
