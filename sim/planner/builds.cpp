#include "sim/planner/builds.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

namespace tidegate::planner {
namespace {

namespace fs = std::filesystem;

constexpr double gib = 1024. * 1024 * 1024;
constexpr const char* path_name = "nvme";

std::string name_of(const Catalog& catalog, const Build& b) {
  std::string name = b.nodes > 1 ? fmt::format("{} nodes of ", b.nodes) : "";
  // A host is named where another one takes the same GPU.
  const bool is_told = std::ranges::any_of(catalog.machines, [&](const CatalogMachine& m) {
    return m.gpu == b.gpu && m.host != b.host;
  });
  if (is_told) name += catalog.hosts[b.host].name + ": ";
  name += fmt::format("{}x {}", b.gpus, catalog.gpus[b.gpu].name);
  if (b.drive && b.drives > 0)
    name += fmt::format(", {}x {}", b.drives, catalog.drives[*b.drive].name);
  name += ", " + to_text(b.memory);
  return catalog.machines[b.entry].rent ? name + ", rented" : name;
}

std::string lanes_refusal(const HostPart& host, const Part& gpu, const DrivePart* drive,
                          const Build& b) {
  const std::int64_t of_drives = drive != nullptr ? b.drives * drive->lanes : 0;
  const std::int64_t lanes = b.gpus * gpu.lanes + of_drives;
  if (lanes <= host.lanes) return "";
  return fmt::format("{} PCIe lanes ({} GPUs x {} + {} drives x {}), and {} has {}", lanes, b.gpus,
                     gpu.lanes, b.drives, drive != nullptr ? drive->lanes : 0, host.name,
                     host.lanes);
}

std::string profile_refusal(const HostPart& host, const Build& b) {
  const Machine& base = *host.base;
  if (b.nodes > 1 && base.fabric().per_node <= BytesPerSecond(0))
    return fmt::format("{} nodes, and the profile of {} has no network", b.nodes, host.name);
  if (b.gpus > 1 && base.fabric().per_gpu <= BytesPerSecond(0))
    return fmt::format("{} GPUs, and the profile of {} has no fabric", b.gpus, host.name);
  const bool has_own =
      std::ranges::any_of(base.paths(), [](const StoragePath& p) { return p.name == path_name; });
  if (b.drives == 0 && has_own)
    return fmt::format("no drives, and the profile of {} has a path {}", host.name, path_name);
  return "";
}

std::string refusal_of(const Catalog& catalog, const Build& b) {
  const HostPart& host = catalog.hosts[b.host];
  const DrivePart* drive = b.drive ? &catalog.drives[*b.drive] : nullptr;
  if (b.gpus > host.gpus)
    return fmt::format("{} GPUs, and {} has {} slots", b.gpus, host.name, host.gpus);
  if (b.drives > host.drives)
    return fmt::format("{} drives, and {} has {} slots", b.drives, host.name, host.drives);
  if (b.memory > host.most_memory) {
    return fmt::format("{} of memory, and {} takes {}", to_text(b.memory), host.name,
                       to_text(host.most_memory));
  }
  const std::string lanes = lanes_refusal(host, catalog.gpus[b.gpu], drive, b);
  return lanes.empty() ? profile_refusal(host, b) : lanes;
}

std::string amount(double base, const char* unit) { return fmt::format("{:.17g} {}", base, unit); }

// Rates of one rank on its share of the cores, where it is another than the profile's.
void share_cores(const Machine& base, const Build& b, std::vector<Override>& sets) {
  const Host& host = base.host();
  const double ranks =
      std::max(1.0, static_cast<double>(b.gpus) / static_cast<double>(host.numa_nodes));
  const double factor = host.ranks_per_numa / ranks;
  if (factor == 1) return;
  const auto set = [&](const char* key, double value) {
    sets.emplace_back(std::string("machine.host.") + key, fmt::format("{:.17g}", value));
  };
  set("ranks_per_numa", ranks);
  set("adam_rate", host.adam_rate * factor);
  set("cast_rate", host.cast_rate * factor);
}

// Ports of the profile with those of their GPUs that are there.
void keep_roots(const Machine& base, const Build& b, std::vector<Override>& sets) {
  const std::vector<RootPort>& roots = base.host().roots;
  if (roots.empty() || b.gpus == base.gpu_count()) return;
  std::string text;
  for (std::size_t r = 0; r < roots.size(); ++r) {
    std::string gpus;
    for (std::int64_t g = 0; g < std::min<std::int64_t>(b.gpus, base.gpu_count()); ++g) {
      if (base.gpu(static_cast<std::size_t>(g)).root == static_cast<std::int32_t>(r))
        gpus += fmt::format("{}{}", gpus.empty() ? "" : ", ", g);
    }
    if (gpus.empty()) continue;
    text += fmt::format("{}{}: {{gpus: [{}], h2d: {}, d2h: {}}}", text.empty() ? "" : ", ",
                        roots[r].name, gpus, amount(roots[r].h2d.value(), "B/s"),
                        amount(roots[r].d2h.value(), "B/s"));
  }
  sets.emplace_back("machine.host.roots", "{" + text + "}");
}

// A component as the host's profile names it.
std::string component_text(const HostPart& host, const Part& part) {
  const std::string path =
      fs::path(part.file).lexically_relative(fs::path(host.file).parent_path()).string();
  const bool is_plain = std::ranges::all_of(path, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '/' || c == '.';
  });
  return is_plain ? path : yaml::word(path);
}

std::string drives_text(const HostPart& host, const DrivePart& drive, std::int64_t count) {
  std::string text = fmt::format("{{count: {}, component: {}", count, component_text(host, drive));
  if (host.gpudirect) text += ", gpudirect: true";
  if (drive.endurance) {
    text += fmt::format(", endurance: {{value: {}, source: catalog}}",
                        amount(drive.endurance->value(), "B"));
  }
  return text + "}";
}

Item item_of(const Part& part, double count, Load load) {
  return {.name = part.name,
          .count = count,
          .price = part.price.value_or(0),
          .idle = part.idle,
          .busy = part.busy,
          .load = load};
}

}  // namespace

std::vector<Build> builds_of(const Catalog& catalog) {
  std::vector<Build> all;
  for (std::size_t e = 0; e < catalog.machines.size(); ++e) {
    const CatalogMachine& m = catalog.machines[e];
    const std::array<std::size_t, 4> sizes = {m.nodes.size(), m.gpus.size(), m.drives.size(),
                                              m.memory.size()};
    std::array<std::size_t, 4> at{};
    for (bool is_done = false; !is_done;) {
      Build b{.entry = e,
              .host = m.host,
              .gpu = m.gpu,
              .drive = m.drive,
              .nodes = m.nodes[at[0]],
              .gpus = m.gpus[at[1]],
              .drives = m.drives[at[2]],
              .memory = m.memory[at[3]],
              .at = at};
      b.name = name_of(catalog, b);
      b.refusal = refusal_of(catalog, b);
      all.push_back(std::move(b));
      std::size_t dimension = at.size();
      while (dimension > 0 && ++at[dimension - 1] == sizes[dimension - 1]) at[--dimension] = 0;
      is_done = dimension == 0;
    }
  }
  return all;
}

std::vector<Override> sets_of(const Catalog& catalog, const Build& b) {
  const HostPart& host = catalog.hosts[b.host];
  std::vector<Override> sets = {
      {"hardware", yaml::word(host.profile)},
      {"machine.gpus", fmt::format("{{count: {}, component: {}}}", b.gpus,
                                   component_text(host, catalog.gpus[b.gpu]))},
      {"machine.host.memory", amount(b.memory.value(), "B")}};
  if (host.base->fabric().per_node > BytesPerSecond(0))
    sets.emplace_back("machine.network.nodes", std::to_string(b.nodes));
  if (b.drive && b.drives > 0) {
    sets.emplace_back(std::string("machine.paths.") + path_name,
                      drives_text(host, catalog.drives[*b.drive], b.drives));
  }
  share_cores(*host.base, b, sets);
  keep_roots(*host.base, b, sets);
  return sets;
}

Bill bill_of(const Catalog& catalog, const Build& b) {
  const HostPart& host = catalog.hosts[b.host];
  const auto nodes = static_cast<double>(b.nodes);
  Bill bill;
  bill.items.push_back(item_of(host, nodes, Load::cores));
  bill.items.push_back(item_of(host.memory, nodes * (b.memory.value() / gib), Load::memory));
  bill.items.push_back(
      item_of(catalog.gpus[b.gpu], nodes * static_cast<double>(b.gpus), Load::gpu));
  if (b.drive && b.drives > 0) {
    const DrivePart& drive = catalog.drives[*b.drive];
    bill.items.push_back(item_of(drive, nodes * static_cast<double>(b.drives), Load::drives));
    bill.items.back().replacement = drive.replacement;
  }
  if (host.network && b.nodes > 1)
    bill.items.push_back(item_of(*host.network, nodes, Load::network));
  const auto& rent = catalog.machines[b.entry].rent;
  if (rent) bill.rent = nodes * *rent;
  return bill;
}

}  // namespace tidegate::planner
