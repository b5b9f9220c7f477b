#include "cli/completion.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>

#include <CLI/CLI.hpp>

#include "cli/common.hpp"
#include "models/base/error.hpp"
#include "sim/keys/explain.hpp"
#include "sim/policy/policy.hpp"
#include "sim/report/words.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view asking = "__complete";

std::vector<std::string> shipped(const char* folder) {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(fs::path(TIDEGATE_DATA_DIR) / folder, absent)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  return names;
}

// Files and folders that begin with the word; a folder ends with its slash.
std::vector<std::string> files(const std::string& word) {
  const std::size_t slash = word.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : word.substr(0, slash + 1);
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, absent)) {
    const std::string name = entry.path().filename().string();
    const bool is_hidden = name.starts_with('.') && !word.ends_with('.');
    if (!is_hidden) names.push_back(folder + name + (entry.is_directory(absent) ? "/" : ""));
  }
  return names;
}

// "policy.optimizer.cache=" and what may follow; of a path of the profile any name will do.
std::vector<std::string> settings(const std::string& word) {
  std::vector<std::string> all;
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  if (equals != std::string::npos) {
    for (const std::string& value : values_of(key)) all.push_back(key + "=" + value);
    if (key == "hardware")
      for (const std::string& name : shipped("hw_profiles")) all.push_back(key + "=" + name);
    return all;
  }
  for (const std::string& known : settable_keys()) all.push_back(known + "=");
  return all;
}

std::vector<std::string> policies() {
  std::vector<std::string> names = {"full", "selective"};
  for (const PolicyEntry& entry : policy_table()) {
    if (entry.section == "activations") names.emplace_back(entry.name);
  }
  return names;
}

// What an option takes is what its help calls it (type_name).
std::vector<std::string> values(const CLI::Option& option, const std::string& word) {
  const std::string type = option.get_type_name();
  const auto with_files = [&word](std::vector<std::string> names) {
    const std::vector<std::string> more = files(word);
    names.insert(names.end(), more.begin(), more.end());
    return names;
  };
  if (type.starts_with("SCENARIO")) return with_files(shipped("scenarios"));
  if (type.starts_with("PROFILE")) return with_files(shipped("hw_profiles"));
  if (type.starts_with("COMPONENT")) return with_files(shipped("hw_profiles/components"));
  if (type.starts_with("KEY")) return settings(word);
  if (type.starts_with("WORD")) return explained_words();
  if (type.starts_with("POLICY")) return policies();
  if (type.starts_with("FILE") || type.starts_with("DIR")) return files(word);
  return {};
}

// Where the words before the last one lead.
struct Cursor {
  const CLI::App* command;
  const CLI::Option* option = nullptr;  // that takes the last word
  std::size_t positionals = 0;          // given so far
};

std::vector<const CLI::App*> subcommands_of(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

const CLI::Option* option_of(const CLI::App& command, const std::string& word) {
  const CLI::Option* option = command.get_option_no_throw(word);
  return option != nullptr && word.starts_with('-') ? option : nullptr;
}

const CLI::App* subcommand_of(const CLI::App& command, const std::string& word) {
  for (const CLI::App* next : subcommands_of(command)) {
    if (next->get_name() == word) return next;
  }
  return nullptr;
}

Cursor cursor_of(const CLI::App& app, const std::vector<std::string>& words) {
  Cursor cursor{&app};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (cursor.option != nullptr) {
      cursor.option = nullptr;
      continue;
    }
    const std::string& word = words[i];
    if (word.starts_with('-')) {
      const CLI::Option* option = option_of(*cursor.command, word);
      if (option != nullptr && option->get_items_expected_max() > 0) cursor.option = option;
    } else if (const CLI::App* next = subcommand_of(*cursor.command, word)) {
      cursor = {next};
    } else {
      ++cursor.positionals;
    }
  }
  return cursor;
}

void add_options(const CLI::App& command, std::vector<std::string>& all) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() || !option->get_lnames().empty()) {
      for (const std::string& name : option->get_lnames()) all.push_back("--" + name);
      for (const std::string& name : option->get_snames()) all.push_back("-" + name);
    }
  }
}

void add_positional(const CLI::App& command, std::size_t given, const std::string& word,
                    std::vector<std::string>& all) {
  std::size_t number = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const bool takes_more = option->get_items_expected_max() > 1;
    if (number++ != given && !takes_more) continue;
    const std::vector<std::string> some = values(*option, word);
    all.insert(all.end(), some.begin(), some.end());
    return;
  }
}

constexpr const char* bash_script =
    R"(# bash completion of tidegate; put into ~/.bashrc: source <(tidegate completion bash)
_tidegate() {
  # '=' and ':' break words in bash; they are joined again before the program is asked.
  local -a words=()
  local i word joins=0 last
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((i > 1)) && { [[ $word == [=:]* ]] || ((joins)); }; then
      words[${#words[@]}-1]+=$word
    else
      words+=("$word")
    fi
    joins=0
    [[ $word == *[=:] ]] && joins=1
  done
  last=${words[${#words[@]}-1]}
  # What bash will replace is only what stands behind the last '=' or ':'.
  local keep=${last%"${last##*[=:]}"}
  COMPREPLY=()
  while IFS= read -r word; do
    [[ -n $word ]] && COMPREPLY+=("${word#"$keep"}")
  done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
  if ((${#COMPREPLY[@]} == 1)); then
    case ${COMPREPLY[0]} in *[=/]) compopt -o nospace 2>/dev/null ;; esac
  fi
}
complete -F _tidegate tidegate
)";

constexpr const char* zsh_script = R"(#compdef tidegate
# zsh completion of tidegate; put into ~/.zshrc behind compinit: source <(tidegate completion zsh)
_tidegate() {
  local -a found spaced open
  # PREFIX is the word at the cursor, without a quote that is still open.
  found=("${(@f)$("${words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  for word in $found; do
    case $word in *[=/]) open+=("$word") ;; *) spaced+=("$word") ;; esac
  done
  (( $#spaced )) && compadd -- $spaced
  (( $#open )) && compadd -S '' -- $open
}
compdef _tidegate tidegate
)";

constexpr const char* fish_script =
    R"(# fish completion of tidegate; save as ~/.config/fish/completions/tidegate.fish
function __tidegate_complete
    set -l words (commandline -opc) (string unescape -- (commandline -ct))
    command $words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c tidegate -f -a '(__tidegate_complete)'
)";

}  // namespace

std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words) {
  const Cursor cursor = cursor_of(app, words);
  const std::string word = words.empty() ? "" : words.back();
  std::vector<std::string> all;
  const std::size_t equals = word.find('=');
  const CLI::Option* joined = equals == std::string::npos || !word.starts_with("--")
                                  ? nullptr
                                  : option_of(*cursor.command, word.substr(0, equals));
  if (cursor.option != nullptr) {
    all = values(*cursor.option, word);
  } else if (joined != nullptr) {
    for (const std::string& value : values(*joined, word.substr(equals + 1)))
      all.push_back(word.substr(0, equals + 1) + value);
  } else if (word.starts_with('-')) {
    add_options(*cursor.command, all);
  } else {
    for (const CLI::App* next : subcommands_of(*cursor.command)) all.push_back(next->get_name());
    add_positional(*cursor.command, cursor.positionals, word, all);
  }
  std::erase_if(all, [&word](const std::string& one) { return !one.starts_with(word); });
  const std::set<std::string> sorted(all.begin(), all.end());
  return {sorted.begin(), sorted.end()};
}

void add_completion(CLI::App& app) {
  CLI::App* command = app.add_subcommand("completion", "a shell's script that completes commands");
  command->footer("Example:\n  source <(tidegate completion bash)");
  const auto add = [command](const char* shell, const char* script, const char* use) {
    CLI::App* one = command->add_subcommand(shell, std::string("print the script for ") + shell);
    one->footer(std::string("Example:\n  ") + use);
    one->callback([script] { print(script); });
  };
  add("bash", bash_script, "source <(tidegate completion bash)     # a line of ~/.bashrc");
  add("zsh", zsh_script,
      "source <(tidegate completion zsh)      # a line of ~/.zshrc, behind compinit");
  add("fish", fish_script, "tidegate completion fish > ~/.config/fish/completions/tidegate.fish");
  command->callback([command] {
    if (command->get_subcommands().empty()) print(command->help());
  });
}

bool is_completing(int argc, char** argv) { return argc > 1 && argv[1] == asking; }

int complete(const CLI::App& app, int argc, char** argv) {
  const std::string all = join(completions(app, {argv + 2, argv + argc}), "\n");
  if (!all.empty()) print(all + "\n");
  return 0;
}

}  // namespace tidegate
