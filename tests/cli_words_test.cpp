#include <algorithm>
#include <filesystem>
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

TEST_CASE("mistakes on the command line are named with what was meant", "[cli]") {
  const std::string s = "zero_infinity_70b";
  struct Mistake {
    Words words;
    const char* message;
  };
  const std::vector<Mistake> mistakes = {
      {{"simulte", s}, "simulte: there is no such command of tidegate; did you mean 'simulate'?"},
      {{"validate", "publshed"}, "did you mean 'published'?\nHelp: tidegate validate --help"},
      {{"simulate", s, "--hardwre", "x"},
       "--hardwre: tidegate simulate has no such flag; did you mean '--hardware'?"},
      {{"simulate", s, "other"}, "other: is one word too many for tidegate simulate"},
      {{"simulate", s, "--set", "iterations", "4"}, "iterations: write key=value"},
      {{"simulate", s, "--hardware", "h200"}, "--hardware: there is no profile 'h200'"},
      {{"simulate", s, "--set", "sub_group_size=1"},
       "--set sub_group_size: there is no key sub_group_size; did you mean "
       "policy.optimizer.sub_group_size?"},
      {{"simulate", s, "--set", "policy.optimizer.buffer_count=few"},
       "--set policy.optimizer.buffer_count: is 'few'"},
      {{"simulate", s, "--set", "machine.paths.nvme.write=7GB"},
       "--set machine.paths.nvme.write: '7GB' is not a bandwidth"},
      {{"tune", s, "--over", "sub_group_size=1,2"}, "--over sub_group_size: there is no key"},
      {{"tune", s, "--over", "policy.zero.stage"}, "--over policy.zero.stage: has no values"}};
  for (const Mistake& mistake : mistakes) {
    INFO(mistake.message);
    const Finished run = tidegate_with(mistake.words);
    CHECK(run.code == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, Containing(mistake.message));
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

namespace {

// Where both shells look for `tidegate`, and a folder with a space in its name.
struct ShellPlace {
  TemporaryFolder folder;
  std::string here = folder.path().string();

  explicit ShellPlace(const char* shell) {
    std::filesystem::create_symlink(TIDEGATE_EXECUTABLE, folder.path() / "tidegate");
    std::filesystem::create_directory(folder.path() / "two words");
    folder.write("two words/a.yaml", "");
    folder.write("script", tidegate_with({"completion", shell}).out);
  }
  Finished run(const std::string& command) const {
    return test::run({"/usr/bin/env", "PATH=" + here + ":/usr/bin:/bin", "HOME=" + here,
                      "XDG_CONFIG_HOME=" + here, "XDG_DATA_HOME=" + here, "sh", "-c", command});
  }
};

bool has_shell(const char* shell) {
  const bool is_there = test::run({"/bin/sh", "-c", std::string("command -v ") + shell}).code == 0;
  if (!is_there) WARN("SKIPPED: " << shell << " is not installed; its script was not tried");
  return is_there;
}

}  // namespace

TEST_CASE("fish completes commands, names, keys and files with spaces", "[cli]") {
  CHECK_THAT(tidegate_with({"completion", "fish"}).out, Containing("complete -c tidegate"));
  if (!has_shell("fish")) return;
  const ShellPlace place("fish");
  const auto complete = [&](const std::string& line) {
    place.folder.write("ask.fish",
                       "source " + place.here + "/script\ncomplete -C '" + line + "'\n");
    const Finished run = place.run("fish --no-config " + place.here + "/ask.fish");
    INFO(run.err);
    CHECK(run.code == 0);
    return lines_of(run.out);
  };
  CHECK(complete("tidegate si") == Words{"simulate"});
  CHECK(complete("tidegate simulate zero_inf") == Words{"zero_infinity_70b"});
  CHECK(complete("tidegate simulate x --set policy.optimizer.buf") ==
        Words{"policy.optimizer.buffer_count="});
  CHECK(complete("tidegate simulate --hardware=h20") == Words{"--hardware=h200_8gpu"});
  CHECK(complete("tidegate simulate " + place.here + "/two\\\\ wo") ==
        Words{place.here + "/two words/"});
}

TEST_CASE("zsh completes commands, names, keys and files with spaces", "[cli]") {
  CHECK_THAT(tidegate_with({"completion", "zsh"}).out, Containing("compdef _tidegate tidegate"));
  if (!has_shell("zsh")) return;
  const ShellPlace place("zsh");
  // A shell in a terminal of its own: a line and a tab go in, what the line becomes comes out. What
  // is not completed blocks until it is killed.
  place.folder.write("ask.zsh", R"(zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1='P> '; autoload -Uz compinit; compinit -u -D; source $HOME/script; print REA''DY"
zpty -r shell out '*READY*P> '
ask() {
  zpty -n -w shell $'\x15'"$1"$'\t'
  zpty -r shell out "*$2*" && print "$2"
}
ask 'tidegate si' mulate
ask 'tidegate simulate zero_inf' inity_70b
ask 'tidegate simulate x --set policy.optimizer.buf' fer_count=
ask 'tidegate simulate --hardware=h20' 0_8gpu
ask "tidegate simulate $HOME/two\\ wo" rds/
ask "tidegate simulate \"$HOME/two wo" rds/
zpty -d shell
)");
  const Finished run = place.run("exec zsh -f " + place.here + "/ask.zsh");
  INFO(run.err);
  CHECK(lines_of(run.out) == Words{"mulate", "inity_70b", "fer_count=", "0_8gpu", "rds/", "rds/"});
}
