#include "models/base/file_kind.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

namespace tidegate {
namespace {

bool has(const yaml::Value& root, std::initializer_list<std::string_view> keys) {
  return std::ranges::any_of(keys, [&](std::string_view key) { return root.find(key) != nullptr; });
}

std::string_view text_of(const yaml::Value& root, std::string_view key) {
  const yaml::Value* value = root.find(key);
  return value != nullptr ? std::string_view(value->text) : std::string_view();
}

const char* name_of(FileKind kind) {
  switch (kind) {
    case FileKind::empty:
      return "empty";
    case FileKind::scenario:
      return "a scenario";
    case FileKind::profile:
      return "the profile of a machine";
    case FileKind::part:
      return "a part of a machine's profile";
    case FileKind::catalog:
      return "a catalog of machines with prices";
    case FileKind::network:
      return "a config.json of Hugging Face";
    case FileKind::deepspeed:
      return "a ds_config.json of DeepSpeed";
    case FileKind::answer:
      return "JSON that tidegate wrote";
    case FileKind::unknown:
      break;
  }
  return "something else";
}

// Where a file of this kind goes.
const char* place_of(FileKind kind) {
  switch (kind) {
    case FileKind::scenario:
      return "; a scenario is named without a flag";
    case FileKind::profile:
      return "; a profile goes with --hardware";
    case FileKind::part:
      return "; a profile names its parts with component (docs/profiles.md)";
    case FileKind::catalog:
      return "; a catalog goes with --catalog of tidegate plan";
    case FileKind::network:
      return "; a config.json goes with --hf, or stands in a scenario as workload.config";
    case FileKind::deepspeed:
      return "; a ds_config.json goes with --deepspeed";
    case FileKind::answer:
    case FileKind::empty:
    case FileKind::unknown:
      break;
  }
  return "";
}

}  // namespace

FileKind kind_of(const yaml::Value& root) {
  if (root.kind == yaml::Value::Kind::null) return FileKind::empty;
  if (text_of(root, "schema").starts_with("tidegate.")) return FileKind::answer;
  if (has(root, {"model_type", "architectures"})) return FileKind::network;
  if (has(root, {"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu",
                 "gradient_accumulation_steps"}))
    return FileKind::deepspeed;
  const std::string_view kind = text_of(root, "kind");
  if (kind == "node") return FileKind::profile;
  if (kind == "catalog") return FileKind::catalog;
  constexpr std::array<std::string_view, 6> parts = {"gpu",  "drive",  "file_system",
                                                     "host", "fabric", "network"};
  if (std::ranges::find(parts, kind) != parts.end()) return FileKind::part;
  return has(root, {"workload", "policy"}) ? FileKind::scenario : FileKind::unknown;
}

void expect(FileKind expected, const yaml::Value& root) {
  const FileKind found = kind_of(root);
  if (found == expected || found == FileKind::unknown) return;
  throw InputError(root.where, "",
                   fmt::format("is {}, where {} is expected{}", name_of(found), name_of(expected),
                               place_of(found)));
}

}  // namespace tidegate
