#include "tests/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

extern char** environ;

namespace tidegate::test {
namespace {

std::runtime_error failed(const char* what, int code) {
  return std::runtime_error(std::string(what) + ": " + std::strerror(code));
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw failed("pipe", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// A started program; killed if it still runs when this goes.
class Child {
 public:
  Child(const std::vector<std::string>& argv, int out, int err) {
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    const int code = ::posix_spawn(&pid_, words[0], &actions, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (code != 0) throw failed(argv[0].c_str(), code);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    while (::waitpid(std::exchange(pid_, -1), &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

// Appends what has arrived; false at the end of the stream.
bool drain(int fd, std::string& into) {
  std::array<char, 65536> bytes{};
  const ssize_t count = ::read(fd, bytes.data(), bytes.size());
  if (count > 0) into.append(bytes.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

}  // namespace

Finished run(const std::vector<std::string>& argv) {
  Pipe out = make_pipe(), err = make_pipe();
  Child child(argv, out.write.get(), err.write.get());
  out.write.close();
  err.write.close();
  Finished finished;
  std::array<pollfd, 2> watched = {pollfd{out.read.get(), POLLIN, 0},
                                   pollfd{err.read.get(), POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&finished.out, &finished.err};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    constexpr int a_minute = 60'000;
    const int ready = ::poll(watched.data(), watched.size(), a_minute);
    if (ready == 0) throw std::runtime_error(argv[0] + " said nothing for a minute");
    for (std::size_t i = 0; i < 2; ++i) {
      if (watched[i].revents != 0 && !drain(watched[i].fd, *texts[i])) watched[i].fd = -1;
    }
  }
  finished.code = child.wait();
  return finished;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tidegate-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw failed("mkdtemp", errno);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  const std::filesystem::path file = path_ / name;
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

}  // namespace tidegate::test
