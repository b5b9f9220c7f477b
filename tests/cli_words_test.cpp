#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

/// What the executable says of itself: help, completion, explanations, schemas.

using namespace tidegate;
using test::Finished;
using test::TemporaryFolder;

namespace {

using Words = std::vector<std::string>;

Finished tidegate_with(Words arguments) {
  arguments.insert(arguments.begin(), TIDEGATE_EXECUTABLE);
  return test::run(arguments);
}

Words lines_of(const std::string& text) {
  Words lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The names below "Subcommands:" of a help text.
Words subcommands_of(const std::string& help) {
  Words names;
  bool is_inside = false;
  for (const std::string& line : lines_of(help)) {
    if (line.starts_with("Subcommands:")) is_inside = true;
    std::smatch name;
    if (is_inside && std::regex_match(line, name, std::regex("  ([a-z]+) .*")))
      names.push_back(name[1]);
    if (is_inside && line.empty()) break;
  }
  return names;
}

// Flags of a help text, and those of them that have no words.
std::set<std::string> flags_of(const std::string& help, Words& silent) {
  std::set<std::string> flags;
  const Words lines = lines_of(help);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].starts_with("  -")) continue;
    const std::string names = lines[i].substr(2, lines[i].find(' ', 2) - 2);
    std::istringstream in(names);
    for (std::string flag; std::getline(in, flag, ',');) flags.insert(flag);
    const bool has_words = lines[i].find("   ", names.size() + 2) != std::string::npos ||
                           lines[i].size() > 30 ||
                           (i + 1 < lines.size() && lines[i + 1].starts_with("          "));
    if (!has_words) silent.push_back(names);
  }
  return flags;
}

// Calls the check with every command and its help.
template <class Check>
void for_each_command(Words path, Check& check) {
  Words asked = path;
  asked.push_back("--help");
  const Finished run = tidegate_with(asked);
  std::string name = "tidegate";
  for (const std::string& word : path) name += " " + word;
  INFO(name);
  CHECK(run.code == 0);
  CHECK(run.err.empty());
  check(name, run.out);
  for (const std::string& sub : subcommands_of(run.out)) {
    Words next = path;
    next.push_back(sub);
    for_each_command(next, check);
  }
}

// What bash offers for a line; its words as bash breaks them.
Words offered(const std::string& script, const Words& words) {
  std::string text = "shopt -u progcomp_alias 2>/dev/null; source " + script + "; COMP_WORDS=(";
  for (const std::string& word : words) text += "'" + word + "' ";
  text += "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tidegate; printf '%s\\n' \"${COMPREPLY[@]}\"";
  const Finished run = test::run({"/bin/bash", "-c", text});
  INFO(text << "\n" << run.err);
  CHECK(run.code == 0);
  return lines_of(run.out);
}

bool has(const Words& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

TEST_CASE("every command's help has an example that its flags allow, and words for each flag",
          "[cli][help]") {
  std::size_t commands = 0;
  const auto check = [&](const std::string& name, const std::string& help) {
    ++commands;
    CHECK_THAT(help, Containing("Example"));
    Words silent;
    const std::set<std::string> flags = flags_of(help, silent);
    CHECK(silent == Words{});
    bool has_own = false;
    for (std::string line : lines_of(help)) {
      const std::size_t at = line.find("tidegate ");
      if (!line.starts_with("  ") || at == std::string::npos) continue;
      line = line.substr(at);
      has_own |= line.starts_with(name);
      if (!line.starts_with(name + " ") || name == "tidegate") continue;
      const std::regex flag(" (--[a-z-]+)");
      if (!subcommands_of(help).empty()) continue;
      for (std::sregex_iterator f(line.begin(), line.end(), flag), end; f != end; ++f) {
        INFO(line);
        CHECK(flags.contains((*f)[1]));
      }
    }
    CHECK(has_own);
  };
  for_each_command({}, check);
  CHECK(commands >= 20);
}

TEST_CASE("the help names what exit codes mean", "[cli][help]") {
  const std::string help = tidegate_with({"--help"}).out;
  for (const char* part : {"0 an answer", "1 a check failed", "2 wrong input", "3 machine error",
                           "4 internal error", "130 interrupted"})
    CHECK_THAT(help, Containing(part));
}

TEST_CASE("explain answers, and refuses with a suggestion", "[cli]") {
  const Finished key = tidegate_with({"explain", "policy.optimizer.buffer_count"});
  CHECK(key.code == 0);
  CHECK_THAT(key.out, Containing("pinned buffers per path and rank"));
  const Finished wrong = tidegate_with({"explain", "bufer_count"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Containing("did you mean 'buffer_count'?"));
  CHECK_THAT(tidegate_with({"explain"}).out, Containing("workload"));
}

TEST_CASE("explain says what a key is in a scenario, and where that stands", "[cli]") {
  const Finished set =
      tidegate_with({"explain", "policy.optimizer.buffer_count", "--in", "zero_infinity_70b"});
  CHECK_THAT(set.out,
             Containing("In zero_infinity_70b: 50") && Containing("zero_infinity_70b.yaml:42:"));
  const Finished left =
      tidegate_with({"explain", "policy.zero.max_live_parameters", "--in", "zero_infinity_70b"});
  CHECK_THAT(left.out, Containing("In zero_infinity_70b: not given"));
  const Finished machine =
      tidegate_with({"explain", "machine.paths.nvme.latency", "--in", "zero_infinity_70b"});
  CHECK_THAT(machine.out, Containing("value: 100 us") && Containing("assumed: "));
}

TEST_CASE("schemas are JSON of draft 2020-12", "[cli]") {
  for (const char* name : {"scenario", "profile"}) {
    const Finished run = tidegate_with({"schema", name});
    CHECK(run.code == 0);
    const nlohmann::json schema = nlohmann::json::parse(run.out);
    CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
    CHECK(schema["additionalProperties"] == false);
  }
}

TEST_CASE("bash completes commands, flags, scenarios, profiles, keys and values", "[cli]") {
  const TemporaryFolder folder;
  // The script asks the program by the name on the line; here that is its path.
  const std::string script =
      folder.write("completion.sh", tidegate_with({"completion", "bash"}).out);
  const std::string us = TIDEGATE_EXECUTABLE;
  CHECK(offered(script, {us, "sim"}) == Words{"simulate"});
  CHECK(has(offered(script, {us, ""}), "explain"));
  CHECK(offered(script, {us, "validate", "pub"}) == Words{"published"});
  CHECK(has(offered(script, {us, "simulate", "--h"}), "--hardware"));
  CHECK(offered(script, {us, "simulate", "zero_inf"}) == Words{"zero_infinity_70b"});
  CHECK(has(offered(script, {us, "simulate", "x", "--hardware", "a100"}), "a100_8gpu"));
  CHECK(offered(script, {us, "simulate", "x", "--set", "policy.optimizer.buf"}) ==
        Words{"policy.optimizer.buffer_count="});
  // bash breaks at '=': only what stands behind it is replaced.
  CHECK(offered(script, {us, "simulate", "x", "--set", "policy.optimizer.cache", "="}) ==
        Words{"false", "true"});
  CHECK(offered(script, {us, "simulate", "x", "--set", "policy.optimizer", "=", "mlp"}) ==
        Words{"mlp_offload"});
  CHECK(offered(script, {us, "explain", "expo"}) == Words{"exposed"});
  CHECK(offered(script, {us, "completion", ""}) == Words{"bash", "fish", "zsh"});
}

TEST_CASE("scripts for zsh and fish are printed", "[cli]") {
  CHECK_THAT(tidegate_with({"completion", "zsh"}).out, Containing("compdef _tidegate tidegate"));
  CHECK_THAT(tidegate_with({"completion", "fish"}).out, Containing("complete -c tidegate"));
}
