#include "cli/explain.hpp"

#include <charconv>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "models/base/error.hpp"
#include "models/profile.hpp"
#include "sim/keys/explain.hpp"
#include "sim/keys/keys.hpp"
#include "sim/keys/markdown.hpp"
#include "sim/keys/schema.hpp"
#include "sim/report/table.hpp"

namespace tidegate {
namespace {

constexpr const char* begin_here =
    "Ask for a key, a policy, or a word of a report:\n"
    "  tidegate explain policy.optimizer          its policies and their keys\n"
    "  tidegate explain buffer_count              a key by its last name\n"
    "  tidegate explain machine.paths.nvme.read   a key of a profile\n"
    "  tidegate explain exposed                   a word of a report\n\n";

std::string overview() {
  Table table{.header = {"key", "meaning"}, .rows = {}, .align = {Align::left, Align::left}};
  const auto add = [&](const KeyTable& keys, const char* prefix) {
    for (const Key* key : keys.keys_of("")) {
      if (key->name != "kind" && key->name != "description")
        table.rows.push_back({prefix + key->name, without_markup(key->meaning.substr(
                                                      0, key->meaning.find_first_of("(;")))});
    }
  };
  add(scenario_keys(), "");
  add(profile_keys(), "machine.");
  return begin_here + to_text(table);
}

const yaml::Value* step_into(const yaml::Value& value, std::string_view step) {
  const std::size_t bracket = step.find('[');
  const yaml::Value* inner = value.find(step.substr(0, bracket));
  if (inner == nullptr || bracket == std::string_view::npos) return inner;
  std::size_t index = 0;
  std::from_chars(step.data() + bracket + 1, step.data() + step.size(), index);
  return index < inner->items.size() ? &inner->items[index] : nullptr;
}

const yaml::Value* value_at(const yaml::Value& root, std::string_view path) {
  const yaml::Value* at = &root;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    at = step_into(*at, path.substr(0, dot));
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return at;
}

std::string flow_text(const yaml::Value& value) {
  std::string text;
  for (const yaml::Entry& entry : value.entries)
    text += (text.empty() ? "{" : ", ") + entry.key + ": " + flow_text(entry.value);
  for (const yaml::Value& item : value.items) text += (text.empty() ? "[" : ", ") + flow_text(item);
  if (value.kind == yaml::Value::Kind::map) return text.empty() ? "{}" : text + "}";
  if (value.kind == yaml::Value::Kind::sequence) return text.empty() ? "[]" : text + "]";
  return value.kind == yaml::Value::Kind::null ? "~" : value.text;
}

// What the key is in this scenario, and where that stands.
std::string found_text(const ExplainFlags& flags) {
  const std::vector<Override> overrides = overrides_of(flags.in);
  const ScenarioSource source = scenario_source(find_scenario(flags.in.scenario));
  const Scenario scenario = load_scenario(source, overrides);
  constexpr std::string_view machine = "machine.";
  const bool is_machine = flags.word.starts_with(machine);
  const yaml::Value values = is_machine ? scenario.hardware : scenario_values(source, overrides);
  const yaml::Value* value =
      value_at(values, is_machine ? flags.word.substr(machine.size()) : flags.word);
  const std::string title = fmt::format("\nIn {}: ", flags.in.scenario);
  if (value == nullptr) return title + "not given; what holds when it is left out\n";
  return title + wrap(flow_text(*value), 70, 4) + "\n    (" + to_text(value->where) + ")\n";
}

void explain_command(const ExplainFlags& flags) {
  if (flags.word.empty()) return print(overview());
  std::string text = explain(flags.word);
  if (!flags.in.scenario.empty()) text += found_text(flags);
  print(text);
}

}  // namespace

void add_explain(CLI::App& app, ExplainFlags& flags) {
  CLI::App* command =
      app.add_subcommand("explain", "what a key, a policy or a word of a report means");
  command->add_option("word", flags.word, "policy.optimizer.buffer_count, mlp_offload, exposed, …")
      ->type_name("WORD");
  command
      ->add_option("--in", flags.in.scenario, "also what a full key is in this scenario, and where")
      ->type_name("SCENARIO");
  command->add_option("--hardware", flags.in.hardware, "with --in: profile instead of its own")
      ->type_name("PROFILE");
  command->footer(
      "Examples:\n"
      "  tidegate explain policy.optimizer\n"
      "  tidegate explain sub_group_size\n"
      "  tidegate explain exposed\n"
      "  tidegate explain policy.optimizer.buffer_count --in zero_infinity_70b\n"
      "  tidegate explain machine.paths.nvme.read --in zero_infinity_70b");
  command->callback([&flags] { explain_command(flags); });
}

void add_schema(CLI::App& app) {
  CLI::App* schema =
      app.add_subcommand("schema", "JSON Schemas of scenarios and profiles, for editors");
  schema->footer("Example:\n  tidegate schema scenario");
  const auto add = [schema](const char* name, const KeyTable& (*table)(), const char* title) {
    CLI::App* one = schema->add_subcommand(name, fmt::format("JSON Schema of a {} file", name));
    one->footer(fmt::format(
        "Example:\n  tidegate schema {0}\n"
        "An editor with the YAML language server completes and checks a file that begins with\n"
        "  # yaml-language-server: $schema={0}.schema.json",
        name));
    one->callback([table, title] { print(schema_of(table(), title)); });
  };
  add("scenario", scenario_keys, "Tidegate scenario");
  add("profile", profile_keys, "Tidegate hardware profile");
  schema->callback([schema] {
    if (schema->get_subcommands().empty()) print(schema->help());
  });
}

}  // namespace tidegate
