#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

#include "validate/peer/peer.hpp"

extern char** environ;

namespace tidegate {
namespace {

class File {
 public:
  explicit File(int number) : number_(number) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

class Actions {
 public:
  Actions() { posix_spawn_file_actions_init(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// Both outputs of the program go to `out`, it reads nothing. Returns the error that kept it from
// starting, else 0 with its exit code.
int run(const std::vector<std::string>& command, int out, int& code) {
  Actions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.get(), out, STDERR_FILENO);
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error =
          ::posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
      error != 0)
    return error;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return 0;
}

}  // namespace

std::vector<std::string> peer_command(const std::string& python, const std::string& folder,
                                      std::int64_t ranks) {
  const std::string script = (std::filesystem::path(folder) / "train.py").string();
  if (ranks == 1) return {python, script};
  return {python, "-m", "torch.distributed.run", "--nproc_per_node", std::to_string(ranks), script};
}

std::string deepspeed_version(const std::string& python) {
  const File out(::memfd_create("version", MFD_CLOEXEC));
  if (out.number() < 0) throw MachineError(fmt::format("memfd_create: {}", strerror(errno)));
  // Importing DeepSpeed takes seconds and prints; its metadata does neither.
  int code = 0;
  const int error =
      run({python, "-c", "import importlib.metadata as m; print(m.version('deepspeed'))"},
          out.number(), code);
  if (error != 0 || code != 0) return "";
  std::array<char, 64> text{};
  const ssize_t size = ::pread(out.number(), text.data(), text.size() - 1, 0);
  std::string version(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return version.substr(0, version.find('\n'));
}

int run_logged(const std::vector<std::string>& command, const std::string& log) {
  const File out(::open(log.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (out.number() < 0)
    throw MachineError(fmt::format("{}: cannot be written: {}", log, strerror(errno)));
  int code = 0;
  if (const int error = run(command, out.number(), code); error != 0)
    throw MachineError(fmt::format("{}: cannot be started: {}", command.front(), strerror(error)));
  return code;
}

}  // namespace tidegate
