#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>

#include "calib/run/run.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

constexpr double gib = 1024. * 1024 * 1024;

// Of a scratch file, and of all that a run may write to one path: enough for time-based rows on a
// drive of 7 GB/s, little beside its life (3.84 TB at one drive-write a day are 7 PB).
struct Sizes {
  double file, budget;
};
Sizes sizes_of(Effort effort) {
  switch (effort) {
    case Effort::quick:
      return {1 * gib, 16 * gib};
    case Effort::standard:
      return {4 * gib, 64 * gib};
    case Effort::full:
      return {16 * gib, 512 * gib};
  }
  return {gib, gib};
}

bool is_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

StorageTarget target_of(const std::string& text, std::size_t number, bool is_only) {
  const std::size_t sign = text.find('=');
  StorageTarget target;
  target.folder = sign == std::string::npos ? text : text.substr(sign + 1);
  target.facts = rig::file_system_of(target.folder);
  const char* usual = target.facts.is_network ? "pfs" : target.facts.in_memory ? "memory" : "nvme";
  target.name = is_only ? usual : fmt::format("{}{}", usual, number);
  if (sign != std::string::npos) target.name = text.substr(0, sign);
  if (!is_name(target.name)) {
    throw InputError(
        fmt::format("--storage {}: '{}' is no name of a path; use small letters, digits and _",
                    text, target.name));
  }
  return target;
}

// Names that the user gives must be of paths.
void mark_shared(std::vector<StorageTarget>& targets, const RunOptions& options) {
  for (StorageTarget& target : targets) target.is_shared = target.facts.is_network;
  const auto mark = [&](const std::string& flag, const std::string& name, bool is_shared) {
    const auto at = std::ranges::find(targets, name, &StorageTarget::name);
    if (at != targets.end()) {
      at->is_shared = is_shared;
      return;
    }
    std::string names;
    for (const StorageTarget& t : targets) names += (names.empty() ? "" : ", ") + t.name;
    throw InputError(fmt::format("{} {}: no --storage has this name; there {}", flag, name,
                                 names.empty() ? "is none" : "are: " + names));
  };
  for (const std::string& name : options.shared) mark("--shared", name, true);
  for (const std::string& name : options.local) mark("--local", name, false);
}

void check_distinct(const std::vector<StorageTarget>& targets) {
  for (std::size_t i = 0; i < targets.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (targets[i].name == targets[j].name) {
        throw InputError("two --storage have the name '" + targets[i].name + "'; write name=DIR");
      }
      if (!targets[i].facts.device.empty() && targets[i].facts.device == targets[j].facts.device) {
        throw InputError(
            fmt::format("--storage {} and {} are on the same device {}; they would be measured as "
                        "two paths and "
                        "are one",
                        targets[j].folder, targets[i].folder, targets[i].facts.device));
      }
    }
  }
}

void check_out(const std::string& out) {
  namespace fs = std::filesystem;
  if (out.empty()) throw InputError("--out is missing; write -o my_node.yaml");
  if (!out.ends_with(".yaml"))
    throw InputError("--out " + out + ": a profile's name ends in .yaml");
  const fs::path folder =
      fs::path(out).has_parent_path() ? fs::path(out).parent_path() : fs::path(".");
  std::error_code error;  // a path that cannot be followed is none
  if (!fs::is_directory(folder, error))
    throw InputError("--out " + out + ": there is no folder " + folder.string());
  if (fs::is_directory(out, error)) throw InputError("--out " + out + " is a folder");
}

}  // namespace

Setup make_setup(const RunOptions& options) {
  check_out(options.out);
  Setup setup;
  setup.effort = options.effort;
  setup.seed = options.seed;
  setup.host = rig::host_facts(options.identify);
  setup.threads = options.threads > 0 ? options.threads : setup.host.logical_cores;
  if (setup.threads > setup.host.logical_cores) {
    throw InputError(fmt::format("--threads {}: this process may use {} cores", setup.threads,
                                 setup.host.logical_cores));
  }
  const Sizes sizes = sizes_of(options.effort);
  setup.file_size = options.file_size.value() > 0 ? options.file_size : Bytes(sizes.file);
  setup.sustained = options.sustained;
  setup.write_budget =
      options.write_budget.value() > 0 ? options.write_budget : Bytes(sizes.budget);
  std::size_t number = 0;
  for (const std::string& text : options.storage) {
    setup.storage.push_back(target_of(text, number++, options.storage.size() == 1));
  }
  check_distinct(setup.storage);
  mark_shared(setup.storage, options);
  if (setup.file_size > setup.write_budget) {
    throw InputError(fmt::format("--write-budget {} is less than one file of {} (--file-size)",
                                 to_text(setup.write_budget), to_text(setup.file_size)));
  }
  for (const StorageTarget& target : setup.storage)
    rig::check_space(target.folder, setup.file_size);
  return setup;
}

}  // namespace tidegate::calib
