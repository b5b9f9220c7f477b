#include "models/base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>

#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  write_atomically(path.string(), [&](std::ostream& out) { out << text; });
}

}  // namespace

TEST_CASE("a file that is replaced leaves its permissions, and nothing stands beside it",
          "[files]") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("a.txt", "old");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  write(file, "new");
  CHECK(text_of(file) == "new");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a link stays a link, and what it stands for is replaced", "[files]") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("a.txt", "old"), link = folder.path() / "link";
  fs::create_symlink("a.txt", link);
  write(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(text_of(file) == "new");
}

TEST_CASE("a pipe is written to, not replaced", "[files]") {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int both = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(both >= 0);
  write(pipe, "new");
  CHECK(fs::is_fifo(pipe));
  char text[8] = {};
  if (fs::is_fifo(pipe)) CHECK(read(both, text, sizeof text) == 3);
  CHECK(std::string(text) == "new");
  close(both);
}

TEST_CASE("what cannot be written is said by its name, and leaves what was there", "[files]") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("a.txt", "old");
  CHECK_THROWS_AS(write_atomically(file.string(), [](std::ostream&) { throw MachineError("x"); }),
                  MachineError);
  CHECK(text_of(file) == "old");
  const std::string none = (folder.path() / "none" / "a.txt").string();
  CHECK_THROWS_WITH(write(none, "new"), Containing(none) && Containing("No such file"));
}
