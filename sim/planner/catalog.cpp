#include "sim/planner/catalog.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/core.h>

#include "models/base/file_kind.hpp"
#include "models/base/yaml.hpp"
#include "models/profile.hpp"
#include "sim/planner/cited_parts.hpp"

namespace tidegate::planner {
namespace {

namespace fs = std::filesystem;

bool is_date(const std::string& text) {
  constexpr std::string_view shape = "dddd-dd-dd";
  return text.size() == shape.size() && std::ranges::equal(text, shape, [](char c, char s) {
           return s == 'd' ? c >= '0' && c <= '9' : c == s;
         });
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

/// Reads one catalog; every problem is collected in the document.
class Reader {
 public:
  explicit Reader(const std::string& path) : document_(yaml::load_file(path)) {
    expect(FileKind::catalog, document_.root().value());
    catalog_.path = path;
  }

  Catalog read() {
    read_top();
    document_.finish();
    return std::move(catalog_);
  }

 private:
  // The maps of parts are strict: what is left unread when they go out of scope is a problem.
  void read_top() {
    yaml::Map top = document_.root().map();
    constexpr std::array<std::string_view, 1> kinds = {"catalog"};
    top.at("kind").choice(kinds);
    catalog_.name = top.text_or("name", fs::path(catalog_.path).stem().string());
    top.text_or("description", "");
    const yaml::Node date = top.at("date");
    catalog_.date = date.text();
    if (!is_date(catalog_.date)) date.problem("is not a date; write year-month-day, 2026-11-30");
    read_currency(top.at("currency"));
    catalog_.is_example = top.flag_or("example", false);
    read_terms(top.at("terms"));
    each(top.at("gpus"), [&](const std::string& name, CitedMap& in) {
      catalog_.gpus.push_back(read_component(name, in, "gpu"));
    });
    if (const auto drives = top.find("drives")) {
      each(*drives, [&](const std::string& name, CitedMap& in) { read_drive(name, in); });
    }
    each(top.at("hosts"), [&](const std::string& name, CitedMap& in) { read_host(name, in); });
    const yaml::Node machines = top.at("machines");
    for (const yaml::Node& node : machines.items()) read_machine(node);
    if (machines.is_sequence() && machines.value().items.empty())
      machines.problem("is empty; list at least one machine to compare");
  }

  void read_currency(const yaml::Node& node) {
    catalog_.currency = node.text();
    const bool is_code =
        catalog_.currency.size() == 3 &&
        std::ranges::all_of(catalog_.currency, [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!is_code)
      node.problem(
          "is no currency; write one code of three capitals for the whole file, such as USD");
  }

  void read_terms(const yaml::Node& node) {
    CitedMap in(node, catalog_.provenance);
    catalog_.terms.years = cited_number(in, "years", 0.1, 100);
    catalog_.terms.utilization = cited_number(in, "utilization", 0.01, 1);
    catalog_.terms.energy = cited_money(in, "energy", catalog_.currency);
    catalog_.terms.pue = cited_number(in, "pue", 1, 10);
  }

  template <class Read>
  void each(const yaml::Node& node, Read read) {
    yaml::Map map = node.map();
    for (const auto& [name, part] : map.all()) {
      CitedMap in(part, catalog_.provenance);
      read(name, in);
    }
  }

  Part read_component(const std::string& name, CitedMap& in, const char* kind) {
    Part part{.name = name,
              .file = component_file(in.plain().at("component"), catalog_.path, kind),
              .lanes = in.plain().count("lanes")};
    read_costs(in, part, catalog_.currency);
    return part;
  }

  void read_drive(const std::string& name, CitedMap& in) {
    DrivePart drive{read_component(name, in, "drive")};
    drive.replacement = in.has("replacement") ? cited_money(in, "replacement", catalog_.currency)
                                              : drive.price.value_or(0);
    if (in.has("endurance"))
      drive.endurance = endurance_of(cited_value(in, "endurance"), drive.file);
    catalog_.drives.push_back(std::move(drive));
  }

  void read_host(const std::string& name, CitedMap& in) {
    HostPart host{Part{.name = name}};
    read_profile(in.plain().at("profile"), host);
    read_costs(in, host, catalog_.currency);
    host.lanes = in.plain().count("lanes");
    host.gpus = in.plain().count("gpus", 1);
    host.drives = in.plain().count_or("drives", 0);
    if (in.has("gpudirect")) host.gpudirect = cited_value(in, "gpudirect").flag();
    {
      CitedMap memory(in.plain().at("memory"), catalog_.provenance);
      host.most_memory = memory.plain().quantity<Bytes>("most");
      host.memory.name = "memory";
      read_costs(memory, host.memory, catalog_.currency);
    }
    if (const auto node = in.plain().find("network")) {
      CitedMap network(*node, catalog_.provenance);
      host.network = Part{.name = "network"};
      read_costs(network, *host.network, catalog_.currency);
    }
    catalog_.hosts.push_back(std::move(host));
  }

  void read_profile(const yaml::Node& node, HostPart& host) {
    const std::string asked = node.text();
    if (asked.empty()) return;
    try {
      const std::string folder = fs::path(catalog_.path).parent_path().string();
      host.file = fs::absolute(find_profile(asked, folder)).lexically_normal().string();
    } catch (const InputError& error) {
      node.problem(error.problems().front().text);
      return;
    }
    const bool is_name = asked.find('/') == std::string::npos && !asked.ends_with(".yaml");
    host.profile = is_name ? asked : host.file;
    host.base = load_machine(host.file);
    host.gpudirect = std::ranges::any_of(
        host.base->paths(), [](const StoragePath& p) { return p.name == "nvme" && p.gpudirect; });
  }

  template <class P>
  std::size_t named(const yaml::Node& node, const std::vector<P>& parts, const char* what) {
    std::vector<std::string> names;
    for (const P& part : parts) names.push_back(part.name);
    const auto at = std::ranges::find(names, node.text());
    if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
    const std::string near = nearest(node.value().text, names);
    if (!node.is_null()) {
      node.problem(fmt::format(
          "there is no {} '{}' in this catalog; {}", what, node.value().text,
          near.empty() ? "there are: " + list_of(names) : "did you mean '" + near + "'?"));
    }
    return 0;
  }

  // A value, or a list of different ones.
  template <class Read>
  auto values(const yaml::Node& node, Read read) {
    std::vector<decltype(read(node))> all;
    if (!node.is_sequence()) return all.push_back(read(node)), all;
    for (const yaml::Node& item : node.items()) {
      const auto value = read(item);
      if (std::ranges::find(all, value) != all.end()) item.problem("stands here twice; keep one");
      all.push_back(value);
    }
    if (all.empty()) node.problem("is an empty list; give at least one value");
    std::ranges::sort(all);
    return all;
  }
  std::vector<std::int64_t> counts(yaml::Map& in, const char* key, std::int64_t least,
                                   std::int64_t most) {
    return values(in.at(key), [&](const yaml::Node& n) { return n.count(least, most); });
  }

  void read_machine(const yaml::Node& node) {
    constexpr std::int64_t most_gpus = 8, most_drives = 64, most_nodes = 100'000;
    CitedMap cited_map(node, catalog_.provenance);
    yaml::Map& in = cited_map.plain();
    CatalogMachine machine{.where = node.where(),
                           .host = named(in.at("host"), catalog_.hosts, "host"),
                           .gpu = named(in.at("gpu"), catalog_.gpus, "GPU")};
    machine.gpus = counts(in, "gpus", 1, most_gpus);
    machine.nodes =
        in.has("nodes") ? counts(in, "nodes", 1, most_nodes) : std::vector<std::int64_t>{1};
    machine.memory =
        values(in.at("memory"), [](const yaml::Node& n) { return n.quantity<Bytes>(); });
    machine.drives = {0};
    if (const auto drive = in.find("drive")) {
      machine.drive = named(*drive, catalog_.drives, "drive");
      machine.drives = counts(in, "drives", 0, most_drives);
    }
    if (cited_map.has("rent")) machine.rent = cited_money(cited_map, "rent", catalog_.currency);
    check_prices(node, machine);
    catalog_.machines.push_back(std::move(machine));
  }

  void check_prices(const yaml::Node& node, const CatalogMachine& m) {
    if (m.rent) {
      if (m.gpus.size() * m.drives.size() * m.memory.size() > 1) {
        node.problem(
            "has the rent of one kind of node and lists several; write one machine for each");
      }
      return;
    }
    if (m.host >= catalog_.hosts.size() || m.gpu >= catalog_.gpus.size()) return;
    const HostPart& host = catalog_.hosts[m.host];
    const auto need = [&](const Part& part) {
      if (part.price) return;
      node.problem(fmt::format(
          "is bought, and its {} has no price; give one, or a rent to this machine", part.name));
    };
    need(host), need(host.memory), need(catalog_.gpus[m.gpu]);
    if (m.drive && *m.drive < catalog_.drives.size()) need(catalog_.drives[*m.drive]);
    if (host.network && std::ranges::max(m.nodes) > 1) need(*host.network);
  }

  yaml::Document document_;
  Catalog catalog_;
};

}  // namespace

Catalog read_catalog(const std::string& path) { return Reader(path).read(); }

}  // namespace tidegate::planner
