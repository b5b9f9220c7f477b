// What is wrong with flags is said before anything is measured.
#include <filesystem>

#include "calib/run/run.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;
namespace fs = std::filesystem;

TEST_CASE("an output that cannot be written is an input error", "[calib][input]") {
  const test::TemporaryFolder folder;
  const auto error_of = [](const fs::path& out) -> std::string {
    try {
      calib::make_setup({.out = out.string()});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(error_of(folder.path() / "node.yaml").empty());
  CHECK_THAT(error_of(folder.path() / "node.txt"), Containing("ends in .yaml"));
  CHECK_THAT(error_of(folder.path() / "none" / "node.yaml"), Containing("there is no folder"));
  fs::create_directory(folder.path() / "a.yaml");
  CHECK_THAT(error_of(folder.path() / "a.yaml"), Containing("is a folder"));
  // A link to itself leads nowhere, which the system calls an error and not an answer.
  fs::create_symlink("loop", folder.path() / "loop");
  CHECK_THAT(error_of(folder.path() / "loop" / "node.yaml"), Containing("there is no folder"));
}
