#pragma once

#include <filesystem>
#include <string>
#include <vector>

/// Running a program from a test.
namespace tidegate::test {

struct Finished {
  int code = -1;  ///< exit code, or 128 plus the signal that ended it
  std::string out, err;
};

/// Runs argv[0] with its arguments to the end and collects what it prints. A program that takes
/// longer than a minute is killed. Throws std::runtime_error when it cannot be started.
Finished run(const std::vector<std::string>& argv);

/// A folder of its own under the system's, removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file in it and returns its path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace tidegate::test
