#include "tests/sim/keys/contexts.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "models/base/error.hpp"
#include "models/profile.hpp"
#include "sim/scenario/scenario.hpp"

namespace tidegate::test {
namespace {

const std::string source = TIDEGATE_SOURCE_DIR;

const std::string decoder = R"(
workload: {network: {layers: 2, hidden: 64, heads: 4, vocabulary: 100}, sequence: 16}
hardware: h100_4gpu_nvme_pfs
policy: {zero: {stage: 3}}
)";
// Keys that only some networks have.
const std::string translator = R"(
workload:
  network: {family: encoder_decoder, layers: 2, hidden: 64, heads: 4, vocabulary: 100,
            positions: learned, max_positions: 64, experts: 4, experts_per_token: 2}
  sequence: 16
hardware: h100_4gpu_nvme_pfs
policy: {}
)";
const std::string biased = R"(
workload:
  network: {layers: 2, hidden: 64, heads: 4, vocabulary: 100, positions: relative_bias}
  sequence: 16
hardware: h100_4gpu_nvme_pfs
policy: {}
)";
const std::string layers = R"(
workload:
  layers:
    - name: a
      forward: [{gemm: {m: 8, n: 8, k: 8}}, {attention: {heads: 2, queries: 8, head_dim: 4}},
                {elementwise: {bytes: 1 kB}}]
      parameters: [{name: w, elements: 64}]
      saved: [{name: x, bytes: 1 kB}]
    - name: b
      operators: [{name: c, forward: [{gemm: {m: 8, n: 8, k: 8}}]}]
hardware: h100_4gpu_nvme_pfs
policy: {}
)";
const std::string loading = "loading: {method: low_cpu_mem_usage}\n";

std::string instance_of(const std::string& section) {
  const std::string layer = "workload.layers[0]";
  if (section == "workload.layers[]") return layer;
  if (section == "workload.layers[].operators[]") return "workload.layers[1].operators[0]";
  if (section == "kernel") return layer + ".forward[0]";
  if (section == "gemm") return layer + ".forward[0].gemm";
  if (section == "attention") return layer + ".forward[1].attention";
  if (section == "elementwise") return layer + ".forward[2].elementwise";
  if (section == "parameter") return layer + ".parameters[0]";
  if (section == "saved_tensor") return layer + ".saved[0]";
  return section;
}

// A section of names as a map: its name, and what the policy cannot do without.
std::string policy_text(const KeyTable& table, const PolicyName& policy) {
  std::string text = "{name: " + policy.name;
  for (const Key* key : table.keys_of(policy.section)) {
    const bool is_of = std::ranges::find(key->of, policy.name) != key->of.end();
    if (!is_of || !key->is_required) continue;
    const bool is_first_words = key->type.kind == Type::Kind::any_of;
    text +=
        ", " + key->name + ": " + example_of(is_first_words ? key->type.parts.back() : key->type);
  }
  return text + "}";
}

yaml::Value parsed(const std::string& text) { return yaml::load_text(text, "context.yaml"); }

std::set<std::string> sections_of(const KeyTable& table) {
  std::set<std::string> sections;
  for (const Key& key : table.keys) sections.insert(key.section);
  for (const PolicyName& policy : table.policies) sections.insert(policy.section);
  return sections;
}

const std::string calibration = R"({tool: t, created: c,
  error_floor: {compute_bound: 1 %, io_bound: 2 %, overlapped: 3 %}, raw: {file: f},
  noise: {a: {spread: 1 %, freedom: 4}}, canaries: {a: {samples: 1}}, checks: {a: {verdict: ok}},
  fits: {a: {form: f, parameters: {p: [1, 0, 2]}}},
  tables: {a: {unit: s, coordinates: [x], rows: [[1, 2, 3, 4, 5]]}},
  nodes: {count: 2}})";

}  // namespace

yaml::Value Context::with(const std::string& name, const std::string& text,
                          const std::string& from) const {
  yaml::Value changed = root;
  yaml::set(changed, path(name), text, {from, 0, 0});
  return changed;
}

yaml::Value* Context::map_at(yaml::Value& root, std::string instance) {
  yaml::Value* at = &root;
  while (!instance.empty()) {
    const std::size_t end = std::min(instance.find_first_of(".["), instance.size());
    const auto entry = std::ranges::find(at->entries, instance.substr(0, end), &yaml::Entry::key);
    if (entry == at->entries.end()) return nullptr;
    at = &entry->value;
    instance = instance.substr(end);
    if (instance.starts_with('[')) {
      at = &at->items[static_cast<std::size_t>(std::stoi(instance.substr(1)))];
      instance = instance.substr(instance.find(']') + 1);
    }
    if (instance.starts_with('.')) instance = instance.substr(1);
  }
  return at;
}

std::vector<Context> scenario_contexts() {
  const KeyTable& table = scenario_keys();
  std::vector<Context> all;
  for (const std::string& section : sections_of(table)) {
    const std::string instance = instance_of(section);
    const bool is_layer = instance.starts_with("workload.layers");
    std::vector<yaml::Value> roots;
    if (is_layer) roots = {parsed(layers)};
    if (section == "workload.network") roots = {parsed(translator), parsed(biased)};
    if (section == "loading") roots = {parsed(decoder + loading)};
    if (roots.empty()) roots = {parsed(decoder)};
    if (section == "policy.optimizer.aio" || section == "policy.optimizer.assignment")
      yaml::set(roots[0], "policy.optimizer", "{name: mlp_offload, paths: [nvme]}", {"c", 0, 0});
    if (section == "policy.activations.aio")
      yaml::set(roots[0], "policy.activations", "{name: ssdtrain, to: [nvme]}", {"c", 0, 0});
    const auto policies = table.policies_of(section);
    for (const yaml::Value& root : roots) {
      if (policies.empty()) all.push_back({root, false, section, instance, nullptr});
      for (const PolicyName* policy : policies) {
        Context context{root, false, section, instance, policy};
        yaml::set(context.root, section, policy_text(table, *policy), {"c", 0, 0});
        all.push_back(std::move(context));
      }
    }
  }
  return all;
}

std::vector<Context> profile_contexts() {
  yaml::Value root = profile_values(source + "/hw_profiles/h100_4gpu_nvme_pfs.yaml", {});
  const Where where{"override", 0, 0};
  yaml::set(root, "calibration", calibration, where);
  const std::string rate = "{value: 100 MB/s, source: a test}";
  const std::string time = "{value: 5 us, source: a test}";
  yaml::set(root, "network", "{nodes: 2, per_node: " + rate + ", latency: " + time + "}", where);
  yaml::set(root, "host.roots", "{a: {gpus: [0, 1], h2d: " + rate + ", d2h: " + rate + "}}", where);
  yaml::set(root, "paths.nvme.cache", "{value: 100 GB, source: a test}", where);
  yaml::set(root, "paths.nvme.write_sustained", rate, where);
  yaml::set(root, "paths.nvme.cache_recovery", rate, where);
  std::vector<Context> all;
  for (const std::string& section : sections_of(profile_keys())) {
    std::string instance = section;
    if (instance == "paths.*") instance = "paths.nvme";
    if (const std::size_t star = instance.find('*'); star != std::string::npos)
      instance.replace(star, 1, "a");
    all.push_back({root, true, section, instance, nullptr});
  }
  return all;
}

std::vector<Problem> problems_of(const Context& context, yaml::Value root) {
  try {
    if (context.is_profile) {
      read_machine(std::move(root));
    } else {
      read_scenario(std::move(root), "context", source + "/scenarios/context.yaml");
    }
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

std::set<std::string> known_at(const Context& context) {
  const std::string nobody = "zzzzzzzzzz", begin = "unknown key; known here: ";
  for (const Problem& p : problems_of(context, context.with(nobody, "1"))) {
    if (p.key != context.path(nobody) || !p.text.starts_with(begin)) continue;
    std::set<std::string> keys;
    std::istringstream list(p.text.substr(begin.size()));
    for (std::string key; std::getline(list, key, ',');)
      keys.insert(key.substr(key.find_first_not_of(' ')));
    return keys;
  }
  return {};
}

nlohmann::json json_of(const yaml::Value& value) {
  using nlohmann::json;
  switch (value.kind) {
    case yaml::Value::Kind::null:
      return nullptr;
    case yaml::Value::Kind::map: {
      json object = json::object();
      for (const yaml::Entry& entry : value.entries) object[entry.key] = json_of(entry.value);
      return object;
    }
    case yaml::Value::Kind::sequence: {
      json array = json::array();
      for (const yaml::Value& item : value.items) array.push_back(json_of(item));
      return array;
    }
    case yaml::Value::Kind::scalar:
      break;
  }
  if (value.quoted) return value.text;
  if (value.text == "true" || value.text == "false") return value.text == "true";
  double number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [rest, error] = std::from_chars(value.text.data(), end, number);
  if (error == std::errc() && rest == end && !value.text.empty()) return number;
  return value.text;
}

}  // namespace tidegate::test
